import type { Agent } from "../agent/agent.ts"
import { type Call, newTurn, type Step } from "../call/context.ts"
import { runCalls } from "../call/schedule.ts"
import type { Refusal } from "../event/events.ts"
import type { ToolPart } from "../schema/part.ts"
import type { Session } from "../schema/session.ts"
import { pending } from "../schema/tool-moves.ts"
import type { Attachment, ToolStateCompleted, ToolStateError } from "../schema/tool-state.ts"
import type { Skill } from "../skill/skill.ts"
import { UsageError } from "../util/errors.ts"
import { newId } from "../util/id.ts"
import { nearNames } from "../util/similarity.ts"

/** A named prompt that the user calls with `/name arguments`. */
export interface CommandConfig {
  /**
   * Text with placeholders: `$ARGUMENTS` and `$1`, `$2` … for the arguments, `` !`…` `` for the output of a shell
   * command, and `@path` for a file.
   */
  template: string
  description?: string | undefined
  /** Agent for this prompt only. Later prompts use the session's previous agent again. */
  agent?: string | undefined
  /** Model for this prompt only, as `provider/model`. */
  model?: string | undefined
  /**
   * Whether a subagent runs the command. The subagent is `agent`, or `general` if `agent` is not set. Default: true if
   * the agent's mode is `subagent`.
   */
  subtask?: boolean | undefined
  /** Text that shows the user which arguments the command expects. */
  argument_hint?: string | undefined
}

/** A command with its name. */
export interface Command extends CommandConfig {
  name: string
  /**
   * Where the command comes from. Undefined for a command that a config, a file or a plugin defines. `skill`: the
   * command loads the skill with this name, if the session's permission rules allow it. `mcp`: an MCP server wrote
   * `template`, which is used verbatim. Commands with an origin have no placeholders.
   */
  origin?: "skill" | "mcp"
}

/** A command with the user's arguments. */
export interface CommandCall extends Command {
  arguments: string
  /** Files that the MCP server returned with the text. */
  attachments?: readonly Attachment[]
}

/** Returns the commands and skills, sorted by name. A command hides a skill with the same name. */
export function listCommands(
  commands: Readonly<Record<string, CommandConfig>>,
  skills: Iterable<Skill> = [],
): Command[] {
  const own: Command[] = Object.entries(commands).map(([name, command]) => ({ name, ...command }))
  const loading = [...skills]
    .filter(({ name }) => !Object.hasOwn(commands, name))
    .map(({ name, description, body }) => ({ name, description, template: body, origin: "skill" as const }))
  return [...own, ...loading].sort((a, b) => (a.name < b.name ? -1 : 1))
}

/**
 * Returns the command that a text such as `/name arguments` calls. If the text calls no known command, it is plain
 * text: the result contains only the most similar command name as `near`, if any. In names, `/` is equivalent to `:`.
 */
export function findCommand(
  text: string,
  commands: readonly Command[],
): { call: CommandCall } | { near?: string } {
  const [, name, given = ""] = /^\/([A-Za-z0-9][\w./:-]*)(?:\s+([\s\S]*))?$/.exec(text.trim()) ?? []
  if (name === undefined) return {}
  const spelled = (known: string) => known.replaceAll("/", ":")
  const found = commands.find((command) => spelled(command.name) === spelled(name))
  if (found) return { call: { ...found, arguments: given.trim() } }
  const [near] = nearNames(
    name,
    commands.map((command) => command.name),
    Math.ceil(name.length / 4),
  )
  return near === undefined ? {} : { near }
}

/** Throws `UsageError` if the command specifies an unknown agent. */
export function checkCommand({ name, agent }: Command, agents: ReadonlyMap<string, unknown>): void {
  if (agent === undefined || agents.has(agent)) return
  throw new UsageError(
    `The command /${name} specifies the unknown agent "${agent}". Available agents: ${[...agents.keys()].join(", ")}.`,
  )
}

/** A piece of an expanded template. A `quoted` piece was written by an MCP server, so its `@` mentions are ignored. */
export type TemplatePiece =
  | { kind: "text" | "quoted"; text: string }
  | { kind: "shell"; command: string }
  | { kind: "skill"; name: string }

/** Splits a command into the pieces that make up its prompt. */
export function commandPieces({ origin, name, template, arguments: given }: CommandCall): TemplatePiece[] {
  if (origin === undefined) return fillTemplate(template, given)
  const said: TemplatePiece =
    origin === "skill" ? { kind: "skill", name } : { kind: "quoted", text: template }
  return given === "" ? [said] : [said, { kind: "text", text: `\n\n${given}` }]
}

/**
 * Replaces `$ARGUMENTS` and `$1`, `$2` … with the arguments. The placeholder with the highest number is replaced with
 * all remaining words. Without placeholders, the arguments are appended to the template. A `` !`…` `` inside the
 * arguments is not run.
 */
export function fillTemplate(template: string, given: string): TemplatePiece[] {
  const words = splitWords(given)
  const places = [...template.matchAll(placeholder)].map(([, number]) => Number(number ?? 0))
  const last = Math.max(0, ...places)
  const fill = (text: string) =>
    text.replace(placeholder, (_, number: string | undefined) => {
      if (number === undefined) return given
      const index = Number(number) - 1
      return index + 1 === last ? words.slice(index).join(" ") : (words[index] ?? "")
    })
  const pieces: TemplatePiece[] = []
  let end = 0
  for (const match of template.matchAll(shellLine)) {
    pieces.push({ kind: "text", text: fill(template.slice(end, match.index)) })
    pieces.push({ kind: "shell", command: fill(match[1] ?? "") })
    end = match.index + match[0].length
  }
  pieces.push({ kind: "text", text: fill(template.slice(end)) })
  if (places.length === 0 && given !== "") pieces.push({ kind: "text", text: `\n\n${given}` })
  return pieces
}

const placeholder = /\$(?:ARGUMENTS\b|([1-9]\d?)(?!\d))/g

/** Matches `` !`…` `` unless a word character or a backtick precedes it. */
const shellLine = /(?<![\w`])!`([^`\n]+)`/g

/** Splits text into words at white space, except within quotes. */
export function splitWords(text: string): string[] {
  return [...text.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(
    ([, double, single, plain]) => double ?? single ?? plain ?? "",
  )
}

/** The prompt that a command expands to. */
export interface ExpandedCommand {
  /** The text for the model. */
  text: string
  /** The text that is searched for `@` mentions. Contains neither call outputs nor quoted text. */
  mentions: string
  refused: Refusal[]
}

/** The agent and model that a command specifies for its prompt. */
export interface PromptOwner {
  agent?: string
  /** `provider/model`. */
  model?: string
  /** The subagent that runs the command. */
  subagent?: string
}

/**
 * Returns the agent and model for a command. A model given with the prompt takes precedence over the command's model.
 * Throws `UsageError` if the agent is unknown.
 */
export function promptOwner(
  { command, model: chosen }: { command?: CommandCall; model?: string },
  { agent: find }: { agent(name: string): Agent },
): PromptOwner {
  if (!command) return {}
  const model = chosen ?? command.model
  const owner: PromptOwner = model === undefined ? {} : { model }
  const agent = command.agent === undefined ? undefined : find(command.agent)
  if (command.subtask ?? agent?.mode === "subagent") owner.subagent = agent?.name ?? "general"
  else if (agent) owner.agent = agent.name
  return owner
}

/**
 * Returns the session with a record of the agent and model to restore after the prompt. The prompt and this record are
 * stored together, so that neither is lost if the process is killed. With `keepModel`, the record does not include the
 * model, because the user chose the model for this and later prompts.
 */
export function lend(
  session: Session,
  { agent, model }: PromptOwner,
  { keepModel }: { keepModel: boolean },
): Session {
  const givesModel = model !== undefined && !keepModel
  if (agent === undefined && !givesModel) return session
  const lent: Session["lent"] = {
    agent: agent === undefined ? undefined : { to: agent, from: session.agent },
    model: givesModel ? (session.model ?? null) : undefined,
  }
  return { ...session, lent }
}

/**
 * Returns the session with the agent and model that it had before the prompt. Keeps the current agent if the agent was
 * changed during the prompt.
 */
export function givenBack(session: Session): Session {
  const { lent, model, ...rest } = session
  if (!lent) return session
  const agent = rest.agent === lent.agent?.to ? lent.agent.from : rest.agent
  const kept = lent.model === undefined ? model : (lent.model ?? undefined)
  return { ...rest, agent, model: kept }
}

/** Options for {@link expandCommand}. */
export interface CommandOptions {
  /** Stores a part of the user's message. */
  keep(part: ToolPart): Promise<void>
  /** Subagent that runs the whole command. The prompt then contains the subagent's answer. */
  subagent?: string
}

/**
 * Turns a command into a prompt. Runs each `` !`…` `` as a call to `bash` and each skill as a call to `skill`. These
 * calls need the same permissions as calls by the model, and are stored in the same way. A note replaces the output of
 * a failed or refused call.
 */
export async function expandCommand(
  command: CommandCall,
  step: Omit<Step, "report">,
  { keep, subagent }: CommandOptions,
): Promise<ExpandedCommand> {
  const pieces = commandPieces(command)
  const refused: Refusal[] = []
  const call = async (calls: readonly WantedCall[]) => {
    const made = await storedCalls(calls, step, keep)
    refused.push(...made.refused)
    return made.outputs
  }
  const outputs = await call(pieces.flatMap((piece) => pieceCall(piece, command.name)))
  const text = pieces.map((piece) => ("text" in piece ? piece.text : (outputs.shift() ?? ""))).join("")
  const mentions = pieces.map((piece) => (piece.kind === "text" ? piece.text : " ")).join("")
  if (subagent === undefined) return { text, mentions, refused }

  const input = { description: `/${command.name}`, prompt: text, subagent_type: subagent }
  const [answer = ""] = await call([{ tool: "task", input }])
  return {
    text: `The user's command was passed to the subagent ${subagent}. Report the result to the user:\n\n${answer}`,
    mentions: "",
    refused,
  }
}

/** A call that a template piece requires. */
export interface WantedCall {
  tool: string
  input: Record<string, unknown>
}

/** Returns the call that a template piece requires, as a list that is empty if no call is required. */
export function pieceCall(piece: TemplatePiece, commandName: string): WantedCall[] {
  switch (piece.kind) {
    case "shell": {
      const description = `Part of the command /${commandName}`
      return [{ tool: "bash", input: { command: piece.command, description } }]
    }
    case "skill":
      return [{ tool: "skill", input: { name: piece.name } }]
    case "text":
    case "quoted":
      return []
  }
}

/** Runs a command's calls. Each call is stored as a part of the user's message. */
async function storedCalls(
  wanted: readonly WantedCall[],
  step: Omit<Step, "report">,
  keep: CommandOptions["keep"],
): Promise<{ outputs: string[]; refused: Refusal[] }> {
  const turn = newTurn()
  const { messageID, active } = step
  const { id: sessionID } = active.run.session
  const parts = new Map<string, ToolPart>()
  const calls: Call[] = wanted.map(({ tool, input }) => ({
    callID: newId("call"),
    tool,
    raw: JSON.stringify(input),
  }))
  for (const { callID, tool, raw } of calls) {
    const ids = { id: newId("prt"), sessionID, messageID, callID }
    const part: ToolPart = { ...ids, type: "tool", tool, state: pending(raw) }
    parts.set(callID, part)
    await keep(part)
  }
  const outcomes = await runCalls(calls, {
    ...step,
    turn,
    async report(callID, state) {
      const part = parts.get(callID)
      if (part) await keep({ ...part, state })
    },
  })
  return { outputs: outcomes.map(({ state }) => shownOutput(state)), refused: turn.refused }
}

/** Returns the text that replaces a shell command or skill in the template. */
export function shownOutput(state: ToolStateCompleted | ToolStateError): string {
  if (state.status === "completed") return state.output.replace(succeeded, "")
  return `(This call failed: ${state.error})`
}

/**
 * Matches the last line of the `bash` output of a successful command. This line is removed, because a prompt shows only
 * the exit codes of failed commands.
 */
const succeeded = /\n\[exit code 0 · [^\]\n]*\]$/

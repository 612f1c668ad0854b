import type { Agent } from "../agent/agent.ts"
import { type Call, newTurn } from "../call/call.ts"
import type { Step } from "../call/context.ts"
import { runCalls } from "../call/schedule.ts"
import type { Refusal } from "../event/events.ts"
import type { ToolPart } from "../schema/part.ts"
import type { Session } from "../schema/session.ts"
import { pending } from "../schema/tool-moves.ts"
import type { ToolStateCompleted, ToolStateError } from "../schema/tool-state.ts"
import { newId } from "../util/id.ts"
import type { CommandCall } from "./command.ts"
import { commandPieces, type TemplatePiece } from "./command.ts"

/** The prompt that a command expands to. */
export interface ExpandedCommand {
  /** The text for the model. */
  text: string
  /** The text that is searched for `@` mentions: without the outputs of commands and quoted texts. */
  mentions: string
  refused: Refusal[]
}

/** The agent and model that a command names for its prompt. */
export interface PromptOwner {
  agent?: string
  /** `provider/model`. */
  model?: string
  /** The subagent that runs the command. */
  subagent?: string
}

/**
 * Returns the agent and model for a command. A model given with the prompt takes precedence over the model of the
 * command. Throws `UsageError` for an unknown agent.
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
 * Records in the session which agent and model to restore after the prompt. The prompt and this record are stored
 * together, so that a killed process loses neither. With `keepModel`, does not restore the model, because the user
 * named it for the prompt.
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
 * Returns the session with the agent and model that it had before the prompt. Keeps the current agent if it was
 * changed in the meantime.
 */
export function givenBack(session: Session): Session {
  const { lent, model, ...rest } = session
  if (!lent) return session
  const agent = rest.agent === lent.agent?.to ? lent.agent.from : rest.agent
  const kept = lent.model === undefined ? model : (lent.model ?? undefined)
  return { ...rest, agent, model: kept }
}

/** Options of {@link expandCommand}. */
export interface CommandOptions {
  /** Stores a part of the user's message. */
  keep(part: ToolPart): Promise<void>
  /** Subagent that runs the whole command. The prompt then contains its answer. */
  subagent?: string
}

/**
 * Turns a command into a prompt. Runs each `` !`…` `` as a call to `bash` and each skill as a call to `skill`, which
 * need the same permission and are stored in the same way as calls by the model. A note replaces the output of a failed
 * or refused call.
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
    text: `The subagent ${subagent} ran the user's command. Report its result to the user:\n\n${answer}`,
    mentions: "",
    refused,
  }
}

interface WantedCall {
  tool: string
  input: Record<string, unknown>
}

/** Returns the call that a piece of a template requires, or an empty list. */
export function pieceCall(
  piece: TemplatePiece,
  commandName: string,
): { tool: string; input: Record<string, unknown> }[] {
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

/** Runs the calls of a command. Each call is stored as a part of the user's message. */
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
  return `(This command failed: ${state.error})`
}

/**
 * Matches the last line of the `bash` output of a successful command. The line is removed from the prompt, which shows
 * it only for a failed command.
 */
const succeeded = /\n\[exit code 0 · [^\]\n]*\]$/

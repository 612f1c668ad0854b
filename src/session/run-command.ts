import type { Agent } from "../agent/agent.ts"
import { type Call, type CallHost, newTurn } from "../call/call.ts"
import { runCalls } from "../call/schedule.ts"
import type { Refusal } from "../event/events.ts"
import type { ToolPart } from "../schema/part.ts"
import type { Session } from "../schema/session.ts"
import { pending } from "../schema/tool-moves.ts"
import type { ToolStateCompleted, ToolStateError } from "../schema/tool-state.ts"
import { newId } from "../util/id.ts"
import type { CommandCall } from "./command.ts"
import { commandPieces, type TemplatePiece } from "./command-template.ts"

/** What a command makes of a prompt. */
export interface ExpandedCommand {
  /** For the model. */
  text: string
  /** The same without what commands printed: what stands there names no files. */
  mentions: string
  refused: Refusal[]
}

/** Who works on the prompt of a command, where it says so. */
export interface PromptOwner {
  agent?: string
  /** `provider/model`. */
  model?: string
  /** The agent that it is handed to. */
  subagent?: string
}

/** A model that the prompt itself names goes before the command's. Throws `UsageError` for an agent that does not exist. */
export function promptOwner(
  { command, model: chosen }: { command?: CommandCall; model?: string },
  { agent: find }: { agent(name: string): Agent },
): PromptOwner {
  if (!command) return {}
  const model = chosen ?? command.model
  const named = model === undefined ? {} : { model }
  const agent = command.agent === undefined ? undefined : find(command.agent)
  if (command.subtask ?? agent?.mode === "subagent") return { ...named, subagent: agent?.name ?? "general" }
  return agent ? { ...named, agent: agent.name } : named
}

/**
 * The session with a note of what it is to have again after the prompt: it is stored with the prompt, so that it holds
 * also where the process is killed. A model that the prompt itself names (`keepModel`) stays.
 */
export function lend(
  session: Session,
  { agent, model }: PromptOwner,
  { keepModel }: { keepModel: boolean },
): Session {
  const givesModel = model !== undefined && !keepModel
  if (agent === undefined && !givesModel) return session
  const lent: Session["lent"] = {
    ...(agent === undefined ? {} : { agent: { to: agent, from: session.agent } }),
    ...(givesModel ? { model: session.model ?? null } : {}),
  }
  return { ...session, lent }
}

/** The session with the agent and model that it had before the prompt, unless something else changed them meanwhile. */
export function givenBack(session: Session): Session {
  const { lent, model, ...rest } = session
  if (!lent) return session
  const agent = rest.agent === lent.agent?.to ? lent.agent.from : rest.agent
  const kept = lent.model === undefined ? model : (lent.model ?? undefined)
  return { ...rest, agent, ...(kept === undefined ? {} : { model: kept }) }
}

/** Where the calls of a command are made and kept. */
export interface CommandHost extends Omit<CallHost, "turn" | "onState" | "onNested"> {
  /** Stores a part of the person's message. */
  keep(part: ToolPart): Promise<void>
}

/**
 * Makes a prompt of a command. Its `` !`…` `` are calls of `bash` by the rules of the session, a skill is one of `skill`:
 * asked about, refused and kept like those of the model; what is refused becomes a note in its place. With `subagent` the
 * whole is handed to that one, and the prompt is what it answered.
 */
export async function expandCommand(
  command: CommandCall,
  host: CommandHost,
  subagent?: string,
): Promise<ExpandedCommand> {
  const pieces = commandPieces(command)
  const refused: Refusal[] = []
  const call = async (calls: readonly { tool: string; input: Record<string, unknown> }[]) => {
    const made = await keptCalls(calls, host)
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
    text: `The person's command was handed to the subagent ${subagent}. Tell them what came of it:\n\n${answer}`,
    mentions: "",
    refused,
  }
}

/** The call that has to be made for a piece: one, or none. */
export function pieceCall(
  piece: TemplatePiece,
  commandName: string,
): { tool: string; input: Record<string, unknown> }[] {
  switch (piece.kind) {
    case "shell": {
      const description = `A line of the command /${commandName}`
      return [{ tool: "bash", input: { command: piece.command, description } }]
    }
    case "skill":
      return [{ tool: "skill", input: { name: piece.name } }]
    case "text":
    case "quoted":
      return []
  }
}

/** Runs calls that no model made, each a part of the person's message. */
async function keptCalls(
  wanted: readonly { tool: string; input: Record<string, unknown> }[],
  { keep, ...host }: CommandHost,
): Promise<{ outputs: string[]; refused: Refusal[] }> {
  const turn = newTurn()
  const parts = new Map<string, ToolPart>()
  const calls: Call[] = wanted.map(({ tool, input }) => ({
    callID: newId("call"),
    tool,
    raw: JSON.stringify(input),
  }))
  for (const { callID, tool, raw } of calls) {
    const { sessionID, messageID } = host
    const part: ToolPart = {
      id: newId("prt"),
      sessionID,
      messageID,
      type: "tool",
      callID,
      tool,
      state: pending(raw),
    }
    parts.set(callID, part)
    await keep(part)
  }
  const outcomes = await runCalls(calls, {
    ...host,
    turn,
    async onState(callID, state) {
      const part = parts.get(callID)
      if (part) await keep({ ...part, state })
    },
  })
  return { outputs: outcomes.map(({ state }) => shownOutput(state)), refused: turn.refused }
}

/** What a call leaves in the place of its piece. */
export function shownOutput(state: ToolStateCompleted | ToolStateError): string {
  if (state.status === "completed") return state.output.replace(succeeded, "")
  return `(This could not be done: ${state.error})`
}

/** The line of `bash` on how a command ended: in the middle of a prompt only a failure is worth a word. */
const succeeded = /\n\[exit code 0 · [^\]\n]*\]$/

import { newTurn } from "../call/call.ts"
import type { Refusal } from "../event/events.ts"
import type { OfferedTool } from "../registry/offered-tool.ts"
import type { MessageWithParts, UserMessage } from "../schema/message.ts"
import type { Part, ToolPart } from "../schema/part.ts"
import { mayHaveActed } from "../schema/tool-moves.ts"
import { attachMentions } from "./attach-mentions.ts"
import type { CommandCall } from "./command.ts"
import type { Conversation } from "./conversation.ts"
import { type ExpandedCommand, expandCommand } from "./run-command.ts"
import type { SessionServices } from "./services.ts"
import { partOf } from "./user-message.ts"
import type { Worker } from "./worker.ts"

/** What a prompt says besides its words, and who does what that takes. */
export interface Prompted {
  text: string
  /** The text is this command. */
  command: CommandCall | undefined
  /** To whom the command goes. */
  subagent: string | undefined
  /** The person's message, the last of the conversation. */
  user: UserMessage
  worker: Worker
}

/**
 * What a command says to the model, and what the person names with `@`, become parts of their message, beside what they
 * wrote. Returns what was refused of it.
 */
export async function addToPrompt(
  conversation: Conversation,
  services: SessionServices,
  prompted: Prompted,
): Promise<Refusal[]> {
  const expanded = await addCommand(conversation, prompted)
  const text = expanded?.mentions ?? prompted.text
  const refused = await addMentions(conversation, services, { ...prompted, text })
  return [...(expanded?.refused ?? []), ...refused]
}

async function addCommand(
  conversation: Conversation,
  { command, subagent, user, worker }: Prompted,
): Promise<ExpandedCommand | undefined> {
  if (!command) return undefined
  const history = await conversation.history()
  const kept = new Map<string, Part>()
  const keep = async (part: Part) => {
    kept.set(part.id, part)
    await conversation.recorder.write({ parts: [part], durable: part.type === "tool" && isSynced(part) })
  }
  const host = { ...hostFor(user, worker, history), keep }
  const expanded = await expandCommand(command, host, subagent)
  await keep({ ...partOf(user)(), type: "text", text: expanded.text, synthetic: true })
  history.at(-1)?.parts.push(...kept.values())
  return expanded
}

/** That a call may act, and how it ended, survive a loss of power, as with the calls of a model. */
function isSynced({ state }: ToolPart): boolean {
  return state.status === "running" ? mayHaveActed(state) : state.status !== "pending"
}

/** A prompt of a subagent's names nothing: its words are a model's. */
async function addMentions(
  conversation: Conversation,
  services: SessionServices,
  { text, user, worker }: Prompted,
): Promise<Refusal[]> {
  const history = await conversation.history()
  // What is attached is no call of the model's, and never recorded as one: see `attach`.
  const { recorded: _, ...host } = hostFor(user, worker, history)
  if (host.parent) return []
  const agents = host.spawn ? services.subagents.startable(host.agent) : []
  const find = () => attachMentions(text, host, agents)
  const { files, notes, refused } = await (services.attach?.(find) ?? find())
  const part = partOf(user)
  const parts: Part[] = [
    ...files.map((file) => ({ ...part(), type: "file" as const, ...file })),
    ...notes.map((note) => ({ ...part(), type: "text" as const, text: note, synthetic: true })),
  ]
  if (parts.length > 0) await conversation.recorder.write({ parts })
  history.at(-1)?.parts.push(...parts)
  return refused
}

function hostFor({ id: messageID }: UserMessage, worker: Worker, history: readonly MessageWithParts[]) {
  const offered = new Map<string, OfferedTool>(worker.tools(history).map((tool) => [tool.id, tool]))
  return worker.host({ messageID, turn: newTurn(), offered })
}

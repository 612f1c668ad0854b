import { newTurn, type Turn } from "../call/call.ts"
import type { Step } from "../call/context.ts"
import type { Refusal } from "../event/events.ts"
import type { MessageWithParts, UserMessage } from "../schema/message.ts"
import type { Part, ToolPart } from "../schema/part.ts"
import { mayHaveActed } from "../schema/tool-moves.ts"
import { attachMentions } from "./attach-mentions.ts"
import type { CommandCall } from "./command.ts"
import { partOf, postPrompt } from "./post-message.ts"
import { type ExpandedCommand, expandCommand } from "./run-command.ts"
import { offeredTools, type SessionAgent } from "./session-run.ts"

/** A prompt with its command and message. */
export interface Prompted {
  text: string
  /** The command that the text calls, if any. */
  command?: CommandCall | undefined
  /** The subagent that runs the command, if any. */
  subagent?: string | undefined
  /** The user's message in the history. */
  user: UserMessage
}

/**
 * Posts the steering inputs that wait in the queue, in order. If the run is interrupted, the remaining inputs stay in
 * the queue. Returns the last message, or undefined if none was posted.
 */
export async function postSteering(active: SessionAgent, turn: Turn): Promise<UserMessage | undefined> {
  const { engine, conversation, model, signal } = active.run
  const { agent } = active
  let user: UserMessage | undefined
  for (const input of await conversation.inputs.claim("steer")) {
    if (signal.aborted) {
      await conversation.inputs.release()
      break
    }
    const { text, files = [] } = input
    user = await postPrompt(conversation, {
      text,
      files,
      input,
      notes: [],
      agent,
      model,
      plugins: engine.plugins,
      signal,
    })
    turn.refused.push(...(await addToPrompt(active, { text, user })))
  }
  return user
}

/**
 * Extends the user's message with the output of the command and with the files that the prompt mentions. Returns the
 * refused calls.
 */
export async function addToPrompt(active: SessionAgent, prompted: Prompted): Promise<Refusal[]> {
  const expanded = await addCommand(active, prompted)
  const text = expanded?.mentions ?? prompted.text
  const refused = await addMentions(active, text, prompted.user)
  return [...(expanded?.refused ?? []), ...refused]
}

async function addCommand(
  active: SessionAgent,
  { command, subagent, user }: Prompted,
): Promise<ExpandedCommand | undefined> {
  if (!command) return undefined
  const { engine, history, conversation } = active.run
  const kept = new Map<string, Part>()
  const keep = async (part: Part) => {
    kept.set(part.id, part)
    await conversation.recorder.write({ parts: [part], durable: part.type === "tool" && isSynced(part) })
  }
  const step = { ...stepFor(active, user), recorded: engine.recorded }
  const expanded = await expandCommand(command, step, { keep, subagent })
  await keep({ ...partOf(user)(), type: "text", text: expanded.text, synthetic: true })
  partsOf(user, history)?.push(...kept.values())
  return expanded
}

/**
 * Returns true if a state must survive a power loss: the start or the end of a call, as for the model's calls.
 */
function isSynced({ state }: ToolPart): boolean {
  return state.status === "running" ? mayHaveActed(state) : state.status !== "pending"
}

/**
 * Attaches the mentioned files to the user's message. Ignores mentions in a subagent's prompt, because a model wrote
 * the prompt. Attachments are not recorded as calls, so they are not replayed.
 */
async function addMentions(active: SessionAgent, text: string, user: UserMessage): Promise<Refusal[]> {
  const { engine, history, conversation, caller } = active.run
  if (caller) return []
  const canSpawn = active.toolScope.unavailable?.task === undefined
  const agents = canSpawn ? engine.subagents.startable(active.agent.name) : []
  const find = () => attachMentions(text, stepFor(active, user), agents)
  const { files, notes, refused } = await (engine.attach?.(find) ?? find())
  const part = partOf(user)
  const parts: Part[] = [
    ...files.map((file) => ({ ...part(), type: "file" as const, ...file })),
    ...notes.map((note) => ({ ...part(), type: "text" as const, text: note, synthetic: true })),
  ]
  if (parts.length > 0) await conversation.recorder.write({ parts })
  partsOf(user, history)?.push(...parts)
  return refused
}

function partsOf(user: UserMessage, history: readonly MessageWithParts[]): Part[] | undefined {
  return history.findLast(({ message }) => message.id === user.id)?.parts
}

function stepFor(active: SessionAgent, user: UserMessage): Omit<Step, "report"> {
  return {
    active,
    messageID: user.id,
    offered: offeredTools(active, active.run.history),
    turn: newTurn(),
  }
}

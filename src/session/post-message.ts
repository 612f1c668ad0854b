import type { Agent } from "../agent/agent.ts"
import { newTurn, type Step } from "../call/context.ts"
import type { Refusal } from "../event/events.ts"
import type { Model } from "../model/model.ts"
import type { PluginHost } from "../plugin/host.ts"
import type { Input, PromptFile } from "../schema/input.ts"
import type { MessageWithParts, ModelRef, UserMessage } from "../schema/message.ts"
import type { Part, ToolPart } from "../schema/part.ts"
import type { Session } from "../schema/session.ts"
import { mayHaveActed } from "../schema/tool-moves.ts"
import type { Handover } from "../tool/tool.ts"
import { newId } from "../util/id.ts"
import { currentTime } from "../util/time.ts"
import { type CommandCall, type ExpandedCommand, expandCommand } from "./command.ts"
import { type Conversation, updateTime } from "./conversation.ts"
import { attachMentions } from "./mentions.ts"
import { hookMessage } from "./plugin-hooks.ts"
import { offeredTools, type SessionAgent, type SessionRun } from "./session-run.ts"
import { describeUndone } from "./undo.ts"

/** A message from the user, with the agent and model that answer it. */
export interface Post {
  text: string
  files: readonly PromptFile[]
  /** The input that becomes this message, if any. */
  input?: Input | undefined
  /** Notes that Tackle adds for the model. */
  notes: readonly string[]
  agent: Agent
  model: Model
  plugins: PluginHost | undefined
  signal: AbortSignal
}

/**
 * Appends the user's message, as changed by plugins, to the conversation. In the same transaction, stores the session's
 * model, its update time and, if it has none, its title, and marks the input as delivered. Undone turns can no longer
 * be redone.
 */
export async function postPrompt(conversation: Conversation, post: Post): Promise<UserMessage> {
  const { text, agent, model } = post
  const message = newUserMessage(conversation, { agent: agent.name, model: model.info.ref })
  const part = partOf(message)
  const written: Part[] = [
    { ...part(), type: "text", text },
    ...post.files.map((file) => ({ ...part(), type: "file" as const, ...file })),
  ]
  const parts = await hookMessage(post.plugins, message, written, post.signal)
  const undone = await describeUndone(conversation.session.undone, conversation.readPage)
  for (const note of undone === undefined ? post.notes : [...post.notes, undone])
    parts.push({ ...part(), type: "text", text: note, synthetic: true })

  const { undone: _, ...session } = conversation.session
  conversation.session = {
    ...session,
    model: model.info.ref,
    time: updateTime(conversation.session),
    title: session.title === "" ? titleOf(text) : session.title,
  }
  const promoted = post.input && conversation.inputs.promoted(post.input, message.id)
  await append(conversation, message, parts, {
    session: conversation.session,
    inputs: promoted ? [promoted] : [],
  })
  return message
}

/** Appends a message that asks the model to continue a run whose process has ended. */
export async function postContinuation(
  conversation: Conversation,
  { agent, model }: Pick<Post, "agent" | "model">,
): Promise<UserMessage> {
  // Other engines read the session again if its update time differs.
  conversation.session = { ...conversation.session, time: updateTime(conversation.session) }
  await conversation.recorder.session(conversation.session)
  const message = newUserMessage(conversation, { agent: agent.name, model: model.info.ref })
  const text =
    "The process that worked on this session ended. Continue with the task. " +
    "If a call was interrupted, check its effect before you repeat it."
  await append(conversation, message, [{ ...partOf(message)(), type: "text", text, synthetic: true }])
  return message
}

/** Appends a message from Tackle for the model. The message has the role `user`. */
export async function postNote({ conversation, model }: SessionRun, text: string): Promise<UserMessage> {
  const { agent } = conversation.session
  const message = newUserMessage(conversation, { agent, model: model.info.ref })
  await append(conversation, message, [{ ...partOf(message)(), type: "text", text, synthetic: true }])
  return message
}

/**
 * Switches the session to another agent for the current and later prompts. Appends a message about the switch and
 * returns it.
 */
export async function handOver(run: SessionRun, { agent, message }: Handover): Promise<UserMessage> {
  const { conversation } = run
  conversation.session = { ...conversation.session, agent }
  await conversation.recorder.session(conversation.session)
  return postNote(run, message)
}

/** Returns a function that creates the ids for a new part of the message. */
export function partOf({
  id: messageID,
  sessionID,
}: UserMessage): () => Pick<Part, "id" | "sessionID" | "messageID"> {
  return () => ({ id: newId("prt"), sessionID, messageID })
}

const titleLength = 60

/** Returns the first line of the user's text. A line that is too long is cut, at a word boundary if possible. */
function titleOf(text: string): string {
  const line = text.trim().split("\n", 1)[0] ?? ""
  if (line.length <= titleLength) return line
  const cut = line.slice(0, titleLength)
  return `${cut.slice(0, Math.max(cut.lastIndexOf(" "), titleLength / 2))}…`
}

/** Creates a message with the role `user`. Does not store the message. */
export function newUserMessage(
  { session }: Conversation,
  { agent, model }: { agent: string; model: ModelRef },
): UserMessage {
  return {
    id: newId("msg"),
    sessionID: session.id,
    role: "user",
    time: { created: currentTime() },
    agent,
    model,
  }
}

/** Stores a message, its parts, and changes to its session and input in one transaction. */
async function append(
  conversation: Conversation,
  message: UserMessage,
  parts: Part[],
  changes: { session?: Session; inputs?: readonly Input[] } = {},
): Promise<void> {
  await conversation.recorder.write({ ...changes, messages: [message], created: true, parts })
  const history = await conversation.history()
  history.push({ message, parts })
}

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
 * Extends the user's message with the command's output and the files that the prompt mentions. Returns the refused
 * calls.
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
 * Returns true if the state must survive a power loss. This applies to the start of a call that may have effects, and
 * to the end of every call.
 */
function isSynced({ state }: ToolPart): boolean {
  return state.status === "running" ? mayHaveActed(state) : state.status !== "pending"
}

/**
 * Attaches the mentioned files to the user's message. Ignores mentions in a subagent's prompt, because a model wrote
 * the prompt. The calls that read the files are not stored.
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

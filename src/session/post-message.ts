import type { Agent } from "../agent/agent.ts"
import type { Model } from "../model/model.ts"
import type { PluginHost } from "../plugin/host.ts"
import type { Input, PromptFile } from "../schema/input.ts"
import type { ModelRef, UserMessage } from "../schema/message.ts"
import type { Part } from "../schema/part.ts"
import type { Session } from "../schema/session.ts"
import type { Handover } from "../tool/tool.ts"
import { newId } from "../util/id.ts"
import { currentTime } from "../util/time.ts"
import type { Conversation } from "./conversation.ts"
import { hookMessage } from "./plugin-hooks.ts"
import type { SessionRun } from "./session-run.ts"
import { describeUndone } from "./undo.ts"
import { updateTime } from "./update-time.ts"

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
 * Appends the user's message, as changed by plugins, to the conversation. Also stores the session's model, its update
 * time and, for the first message, its title.
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

/** Appends a message that asks the model to continue after its process has ended. */
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

/** Returns a function that creates the ids of a new part of the message. */
export function partOf({
  id: messageID,
  sessionID,
}: UserMessage): () => Pick<Part, "id" | "sessionID" | "messageID"> {
  return () => ({ id: newId("prt"), sessionID, messageID })
}

const titleLength = 60

/** Returns the first line of the user's text, shortened at a word boundary if it is too long for a title. */
function titleOf(text: string): string {
  const line = text.trim().split("\n", 1)[0] ?? ""
  if (line.length <= titleLength) return line
  const cut = line.slice(0, titleLength)
  return `${cut.slice(0, Math.max(cut.lastIndexOf(" "), titleLength / 2))}…`
}

/** Creates a message with the role `user`. Does not store it. */
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

import type { Agent } from "../agent/agent.ts"
import type { Model } from "../model/model.ts"
import type { PluginHost } from "../plugin/host.ts"
import type { UserMessage } from "../schema/message.ts"
import type { Part } from "../schema/part.ts"
import type { Conversation } from "./conversation.ts"
import type { PromptFile } from "./handle.ts"
import { hookMessage } from "./plugin-hooks.ts"
import { describeUndone } from "./undo.ts"
import { newUserMessage, partOf, titleOf } from "./user-message.ts"

/** What a person says, and to whom. */
export interface Post {
  text: string
  files: readonly PromptFile[]
  /** What Tackle adds to it for the model. */
  notes: readonly string[]
  agent: Agent
  model: Model
  plugins: PluginHost | undefined
  signal: AbortSignal
}

/**
 * Puts a person's message at the end of the conversation, as plugins leave it. The session is stored with the model, its
 * new time and, at first, its title.
 */
export async function postPrompt(conversation: Conversation, post: Post): Promise<UserMessage> {
  const { recorder, readPage } = conversation
  const { text, agent, model } = post
  const message = newUserMessage({ session: conversation.session, agent, model })
  const part = partOf(message)
  const said: Part[] = [
    { ...part(), type: "text", text },
    ...post.files.map((file) => ({ ...part(), type: "file" as const, ...file })),
  ]
  const parts = await hookMessage(post.plugins, message, said, post.signal)
  const putBack = await describeUndone(conversation.session.undone, readPage)
  for (const note of putBack === undefined ? post.notes : [...post.notes, putBack])
    parts.push({ ...part(), type: "text", text: note, synthetic: true })

  const { undone: _, ...session } = conversation.session
  conversation.session = {
    ...session,
    model: model.info.ref,
    time: { ...session.time, updated: message.time.created },
    title: session.title === "" ? titleOf(text) : session.title,
  }
  await recorder.session(conversation.session)
  await append(conversation, message, parts)
  return message
}

/** Puts a message to the model in the person's place at the end of the conversation. */
export async function postNote(
  conversation: Conversation,
  { text, agent, model }: { text: string; agent: Agent; model: Model },
): Promise<UserMessage> {
  const message = newUserMessage({ session: conversation.session, agent, model })
  await append(conversation, message, [{ ...partOf(message)(), type: "text", text, synthetic: true }])
  return message
}

async function append(conversation: Conversation, message: UserMessage, parts: Part[]): Promise<void> {
  await conversation.recorder.write({ messages: [message], created: true, parts })
  const history = await conversation.history()
  history.push({ message, parts })
}

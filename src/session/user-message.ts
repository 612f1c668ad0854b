import type { Agent } from "../agent/agent.ts"
import type { Model } from "../model/model.ts"
import type { UserMessage } from "../schema/message.ts"
import type { Part } from "../schema/part.ts"
import type { Session } from "../schema/session.ts"
import { newId } from "../util/id.ts"

/** A message of the person's, or in their name, as it begins. */
export function newUserMessage({
  session,
  agent,
  model,
}: {
  session: Session
  agent: Agent
  model: Model
}): UserMessage {
  return {
    id: newId("msg"),
    sessionID: session.id,
    role: "user",
    time: { created: Date.now() },
    agent: agent.name,
    model: model.info.ref,
  }
}

/** What each part of a message begins with: its place, and an id that is new at each call. */
export function partOf({
  id: messageID,
  sessionID,
}: UserMessage): () => Pick<Part, "id" | "sessionID" | "messageID"> {
  return () => ({ id: newId("prt"), sessionID, messageID })
}

const titleLength = 60

/** The first line of what the person asked, cut at a word. */
export function titleOf(text: string): string {
  const line = text.trim().split("\n", 1)[0] ?? ""
  if (line.length <= titleLength) return line
  const cut = line.slice(0, titleLength)
  return `${cut.slice(0, Math.max(cut.lastIndexOf(" "), titleLength / 2))}…`
}

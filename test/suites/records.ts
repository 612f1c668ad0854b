import type { Message } from "../../src/schema/message.ts"
import type { TextPart } from "../../src/schema/part.ts"
import type { Session } from "../../src/schema/session.ts"

/** A session as small as the schema allows. */
export function aSession(id: string, more: Partial<Session> = {}): Session {
  const time = { created: 1, updated: 1 }
  return { id, title: id, directory: "/w", worktree: "/w", agent: "build", time, ...more }
}

export function aMessage(id: string, sessionID: string): Message {
  const model = { providerID: "tackle", modelID: "offline" }
  return { id, sessionID, role: "user", time: { created: 1 }, agent: "build", model }
}

export function aPart(id: string, messageID: string, sessionID: string, text = id): TextPart {
  return { id, sessionID, messageID, type: "text", text }
}

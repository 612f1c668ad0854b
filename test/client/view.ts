import { withDelta } from "../../src/event/part-delta.ts"
import type { Message } from "../../src/schema/message.ts"
import type { Part } from "../../src/schema/part.ts"
import type { SessionEvent } from "../../src/session/session-events.ts"

/** Creates a view of a session that knows only the events of its stream. */
export function createView() {
  const messages = new Map<string, Message>()
  const parts = new Map<string, Part>()
  const byID = (a: { id: string }, b: { id: string }) => (a.id < b.id ? -1 : 1)
  return {
    /** Numbers of the events, in order. */
    seen: [] as number[],
    apply(event: SessionEvent): void {
      if (event.type === "reset") {
        messages.clear()
        parts.clear()
        this.seen = []
      } else if (event.seq !== undefined) this.seen.push(event.seq)
      if (event.type === "message.created" || event.type === "message.updated")
        messages.set(event.message.id, event.message)
      if (event.type === "part.updated") parts.set(event.part.id, event.part)
      if (event.type === "part.removed") parts.delete(event.partID)
      const growing = event.type === "part.delta" ? parts.get(event.partID) : undefined
      if (event.type === "part.delta" && growing) parts.set(growing.id, withDelta(growing, event))
    },
    /** The messages as the store returns them. */
    get messages() {
      return [...messages.values()].sort(byID).map((message) => ({
        message,
        parts: [...parts.values()].filter(({ messageID }) => messageID === message.id).sort(byID),
      }))
    },
  }
}

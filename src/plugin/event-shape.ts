import type { TackleEvent } from "../event/events.ts"

/** An event as OpenCode's plugins know it. */
export interface PluginEvent {
  type: string
  properties: Record<string, unknown>
}

/** One of our events in OpenCode's words: none where it has none for it, two where it tells the same twice. */
export function describeEvent(event: TackleEvent): PluginEvent[] {
  const { sessionID } = event
  const about = (type: string, properties: Record<string, unknown>): PluginEvent => ({
    type,
    properties: { sessionID, ...properties },
  })
  switch (event.type) {
    case "session.created":
    case "session.updated":
      return [about(event.type, { info: event.session })]
    case "session.error":
      return [about(event.type, { error: { name: event.error.name, data: event.error } })]
    case "message.created":
    case "message.updated":
      return [about("message.updated", { info: event.message })]
    case "part.updated": {
      const updated = about("message.part.updated", { part: event.part, time: event.time })
      return event.part.type === "compaction" ? [updated, about("session.compacted", {})] : [updated]
    }
    case "part.removed":
      return [about("message.part.removed", { messageID: event.messageID, partID: event.partID })]
    case "part.delta":
      return [about("message.part.delta", { partID: event.partID, field: event.field, delta: event.delta })]
    case "permission.asked":
      return [about(event.type, { ...event.request })]
    case "permission.replied":
      return [about(event.type, { requestID: event.requestID, reply: event.reply })]
    case "question.asked":
      return [about(event.type, { ...event.request })]
    case "question.replied":
      return [about(event.type, { requestID: event.requestID, answers: event.answers })]
    case "question.rejected":
      return [about(event.type, { requestID: event.requestID })]
    case "todo.updated":
      return [about(event.type, { todos: event.todos })]
    // Only we tell of it.
    case "context.filling":
      return []
    case "run.completed":
      return [about("session.status", { status: { type: "idle" } }), about("session.idle", {})]
  }
}

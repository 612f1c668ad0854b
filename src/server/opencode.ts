import type { TackleEvent } from "../event/events.ts"
import type { Message, MessageError, MessageWithParts } from "../schema/message.ts"
import type { Part } from "../schema/part.ts"
import type { Session } from "../schema/session.ts"

/** An object in the format of OpenCode's API. */
export type OpenCodeObject = Record<string, unknown>

/** An event in the format of OpenCode's API. */
export interface OpenCodeEvent {
  id: string
  type: string
  properties: OpenCodeObject
}

/** Returns a session in OpenCode's format. `version` is the server's version. */
export function toOpenCodeSession(session: Session, version: string): OpenCodeObject {
  const { id, title, directory, worktree, parentID, agent, model, time, undone = [] } = session
  const last = undone.at(-1)
  return {
    id,
    slug: id,
    projectID: worktree,
    directory,
    parentID,
    title,
    agent,
    model: model && { id: model.modelID, providerID: model.providerID },
    version,
    time,
    revert: last === undefined ? undefined : { messageID: last },
  }
}

/** Returns a message in OpenCode's format. */
function toOpenCodeMessage(message: Message): OpenCodeObject {
  if (message.role === "user") return { ...message }
  const { model, error, ...rest } = message
  return {
    ...rest,
    providerID: model.providerID,
    modelID: model.modelID,
    mode: message.agent,
    error: error && toOpenCodeError(error),
  }
}

/** Returns a message with its parts in OpenCode's format. */
export function toOpenCodeEntry({ message, parts }: MessageWithParts): OpenCodeObject {
  return { info: toOpenCodeMessage(message), parts: parts.map(toOpenCodePart) }
}

/** Returns a part in OpenCode's format. Most kinds of parts have the same format in Tackle. */
function toOpenCodePart(part: Part): OpenCodeObject {
  switch (part.type) {
    case "patch":
      return { ...part, hash: part.id, files: part.files.map(({ path }) => path) }
    case "retry":
      return { ...part, error: { name: "APIError", data: { message: part.error, isRetryable: true } } }
    default:
      return { ...part }
  }
}

const errorNames: Partial<Record<MessageError["name"], string>> = {
  aborted: "MessageAbortedError",
  auth: "ProviderAuthError",
  "context-overflow": "ContextOverflowError",
  incomplete: "MessageOutputLengthError",
  output: "StructuredOutputError",
  provider: "APIError",
}

function toOpenCodeError({ name, message, status }: { name: string; message: string; status?: number }) {
  const known = Object.hasOwn(errorNames, name) ? errorNames[name as MessageError["name"]] : undefined
  return { name: known ?? "UnknownError", data: { message, statusCode: status, isRetryable: false } }
}

/** Creates a function that converts a server's events. The function omits events that OpenCode does not have. */
export function createOpenCodeEvents(version: string): (event: TackleEvent) => OpenCodeEvent[] {
  let count = 0
  /**
   * Message IDs of the parts that are being streamed, keyed by part ID, because OpenCode's deltas also contain the
   * message ID, but Tackle's contain only the part ID.
   */
  const messages = new Map<string, string>()

  function converted(type: string, properties: OpenCodeObject): OpenCodeEvent {
    count += 1
    return { id: `evt_${count}`, type, properties }
  }

  return (event) => {
    const { sessionID } = event
    switch (event.type) {
      case "session.created":
      case "session.updated":
      case "session.deleted":
        return [converted(event.type, { sessionID, info: toOpenCodeSession(event.session, version) })]
      case "session.error":
        return [converted(event.type, { sessionID, error: toOpenCodeError(event.error) })]
      case "message.created":
      case "message.updated": {
        const { message } = event
        const info = converted("message.updated", { sessionID, info: toOpenCodeMessage(message) })
        const begins = event.type === "message.created" && message.role === "assistant"
        return begins ? [converted("session.status", { sessionID, status: { type: "busy" } }), info] : [info]
      }
      case "part.updated": {
        const { part, time } = event
        const isStreamed = part.type === "text" || part.type === "reasoning"
        if (isStreamed && part.time?.end === undefined) messages.set(part.id, part.messageID)
        else messages.delete(part.id)
        const updated = converted("message.part.updated", { sessionID, part: toOpenCodePart(part), time })
        const compacted = part.type === "compaction" ? [converted("session.compacted", { sessionID })] : []
        return [updated, ...compacted]
      }
      case "part.removed": {
        const { messageID, partID } = event
        messages.delete(partID)
        return [converted("message.part.removed", { sessionID, messageID, partID })]
      }
      case "part.delta": {
        const { partID, field, delta } = event
        const messageID = messages.get(partID)
        if (messageID === undefined) return []
        return [converted("message.part.delta", { sessionID, messageID, partID, field, delta })]
      }
      case "permission.asked":
      case "question.asked":
        return [converted(event.type, { ...event.request })]
      case "permission.replied":
        return [converted(event.type, { sessionID, requestID: event.requestID, reply: event.reply })]
      case "question.replied":
        return [converted(event.type, { sessionID, requestID: event.requestID, answers: event.answers })]
      case "question.rejected":
        return [converted(event.type, { sessionID, requestID: event.requestID })]
      case "todo.updated":
        return [converted(event.type, { sessionID, todos: event.todos })]
      case "run.completed":
        return [
          converted("session.status", { sessionID, status: { type: "idle" } }),
          converted("session.idle", { sessionID }),
        ]
      default:
        return []
    }
  }
}

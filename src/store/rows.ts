import type { Input } from "../schema/input.ts"
import type { Message } from "../schema/message.ts"
import type { Part } from "../schema/part.ts"
import type { Session } from "../schema/session.ts"
import type { Todo } from "../schema/todo.ts"
import { isRecord, parseJson } from "../util/json.ts"
import { DamagedRowError, type SequencedChange } from "./store.ts"

/**
 * Returns a stored change. `data` is JSON. For a removed part, `data` contains the ids of the part and its message.
 */
export function changeOf(kind: string, sessionID: string, data: unknown): SequencedChange["change"] {
  switch (kind) {
    case "session":
      return { kind, session: parse<Session>(data) }
    case "message":
      return { kind, message: parse<Message>(data) }
    case "part":
      return { kind, part: parse<Part>(data) }
    case "input":
      return { kind, input: parse<Input>(data) }
    case "todos":
      return { kind, sessionID, todos: parse<Todo[]>(data) }
    default:
      return { kind: "part.remove", sessionID, ...parse<{ messageID: string; partID: string }>(data) }
  }
}

/** The greatest code point, which sorts after all ids. */
export const afterAllText = "\u{10ffff}"

/** Parses a stored session. Returns undefined if the data is not a session. */
export function readSession(data: unknown): Session | undefined {
  const parsed = parseJson(String(data))
  const session = parsed.ok && isRecord(parsed.value) ? parsed.value : {}
  const isWhole =
    ["id", "title", "directory", "worktree", "agent"].every((key) => typeof session[key] === "string") &&
    isRecord(session.time) &&
    typeof session.time.updated === "number"
  return isWhole ? parse<Session>(data) : undefined
}

/**
 * Parses the JSON of a message or part. Throws {@link DamagedRowError}, which identifies the row, if the row is
 * damaged. Checks only for damage by other programs or the disk, because full validation of many rows would be slow.
 */
export function parseRow<T>(
  { id, message_id, data }: Record<string, unknown>,
  sessionID: string,
  fits: (value: Record<string, unknown>) => value is T & Record<string, unknown>,
): T {
  const parsed = parseJson(String(data))
  if (parsed.ok && isRecord(parsed.value) && parsed.value.id === id && fits(parsed.value)) return parsed.value
  const row = message_id === undefined ? `message ${id}` : `part ${id} of message ${message_id}`
  throw new DamagedRowError(row, sessionID, parsed.ok ? "its JSON has the wrong shape" : parsed.error)
}

/** Returns true if a parsed row has the shape of a message. */
export function isMessage(value: Record<string, unknown>): value is Message & Record<string, unknown> {
  return (value.role === "user" || value.role === "assistant") && isRecord(value.time)
}

/** Returns true if a parsed row has the shape of a part. */
export function isPart(value: Record<string, unknown>): value is Part & Record<string, unknown> {
  const hasText = value.type !== "text" || typeof value.text === "string"
  return typeof value.type === "string" && hasText && (value.type !== "tool" || isRecord(value.state))
}

/** Parses stored JSON without validation, because it was written from a value of this type. */
export function parse<T>(data: unknown): T {
  return JSON.parse(String(data)) as T
}

import type { Input } from "../schema/input.ts"
import type { Message } from "../schema/message.ts"
import type { Part } from "../schema/part.ts"
import type { Session } from "../schema/session.ts"
import type { Todo } from "../schema/todo.ts"
import { isRecord, parseJson } from "../util/json.ts"
import {
  DamagedRowError,
  type ListedRow,
  maxSessions,
  type SequencedChange,
  type SessionFilter,
  StoreError,
} from "./store.ts"

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

/** A filter in the form that both databases use. */
export interface SessionSelection
  extends Pick<SessionFilter, "worktree" | "parentID" | "tenant" | "updatedUntil"> {
  /** Texts of which a session's JSON must contain at least one. Undefined if every session is selected. */
  places: string[] | undefined
  after: { updated: number; id: string } | undefined
  limit: number
}

/** Throws {@link StoreError} if the limit is too high or the cursor is invalid. */
export function selectionOf({
  directory,
  roots,
  after,
  limit = 100,
  ...filter
}: SessionFilter): SessionSelection {
  if (limit > maxSessions)
    throw new StoreError(
      `A read is limited to ${maxSessions} sessions, and ${limit} were requested. Read them page by page.`,
    )
  // In JSON, the quotes of another text are escaped, so these texts occur only as this property.
  const inside = (root: string) =>
    `"directory":${JSON.stringify(root.endsWith("/") ? root : `${root}/`).slice(0, -1)}`
  const exactly = (path: string) => `"directory":${JSON.stringify(path)}`
  const places =
    directory === undefined ? roots?.flatMap((root) => [exactly(root), inside(root)]) : [exactly(directory)]
  return { ...filter, places, limit, after: after === undefined ? undefined : parseCursor(after) }
}

function parseCursor(cursor: string): { updated: number; id: string } {
  const [, updated, id] = /^(\d+(?:\.\d+)?)\.(\w+)$/.exec(cursor) ?? []
  if (updated === undefined || id === undefined)
    throw new StoreError(
      "The cursor is not valid. Pass the cursor of a listed session.",
      undefined,
      "store.cursor",
    )
  return { updated: Number(updated), id }
}

/** Returns the rows of a list without damaged sessions, and the cursor after the last row. */
export function listRows(rows: readonly Record<string, unknown>[]): { listed: ListedRow[]; last?: string } {
  const cursorOf = ({ updated, id }: Record<string, unknown>) => `${updated}.${id}`
  const listed = rows.flatMap((row) => {
    const session = readSession(row.data)
    return session ? [{ session, cursor: cursorOf(row) }] : []
  })
  const last = rows.at(-1)
  return { listed, last: last && cursorOf(last) }
}

/** Parses a stored session. Returns undefined if the data is not a session. */
function readSession(data: unknown): Session | undefined {
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

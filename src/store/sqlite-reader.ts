import type { DatabaseSync } from "node:sqlite"
import type { Input } from "../schema/input.ts"
import type { Message, MessageWithParts } from "../schema/message.ts"
import type { Part } from "../schema/part.ts"
import type { Grant } from "../schema/permission.ts"
import type { Session } from "../schema/session.ts"
import type { Todo } from "../schema/todo.ts"
import { isRecord, parseJson } from "../util/json.ts"
import { DamagedRowError, type MessagePage, type SequencedChange, type SessionFilter } from "./store.ts"

/** Reads from the tables, with prepared statements. */
export interface SqliteReader {
  session(id: string): Session | undefined
  /**
   * Returns the sessions that the filter selects. If `among` is set, selects only from the ids that this query returns.
   */
  sessions(filter: SessionFilter, among?: { sql: string; values: string[] }): Session[]
  messages(sessionID: string, page?: MessagePage): MessageWithParts[]
  todos(sessionID: string): Todo[]
  grants(scope: { sessionID?: string; worktree?: string }): Grant[]
  sequence(sessionID: string): number
  changes(sessionID: string, after: number): SequencedChange[]
  pendingInputs(sessionID: string): Input[]
  input(sessionID: string, id: string): Input | undefined
  sessionsWithInputs(): string[]
}

/** Creates a reader. Throws if the tables do not have the newest version. */
export function createReader(database: DatabaseSync): SqliteReader {
  const select = {
    session: database.prepare("SELECT data FROM sessions WHERE id = ?"),
    newest: database.prepare(
      "SELECT id, data FROM messages WHERE session_id = ? AND id > ? AND id < ? ORDER BY id DESC LIMIT ?",
    ),
    oldest: database.prepare(
      "SELECT id, data FROM messages WHERE session_id = ? AND id > ? AND id < ? ORDER BY id LIMIT ?",
    ),
    parts: database.prepare(
      `SELECT message_id, id, data FROM parts WHERE session_id = ? AND message_id BETWEEN ? AND ?
       ORDER BY message_id, id`,
    ),
    todos: database.prepare("SELECT data FROM todos WHERE session_id = ?"),
    sequence: database.prepare("SELECT seq FROM sequences WHERE session_id = ?"),
    changes: database.prepare(
      `SELECT 'session' AS kind, seq, data FROM sessions WHERE id = :session AND seq > :after
       UNION ALL SELECT 'message', seq, data FROM messages WHERE session_id = :session AND seq > :after
       UNION ALL SELECT 'part', seq, data FROM parts WHERE session_id = :session AND seq > :after
       UNION ALL SELECT 'todos', seq, data FROM todos WHERE session_id = :session AND seq > :after
       UNION ALL SELECT 'input', seq, data FROM inputs WHERE session_id = :session AND seq > :after
       UNION ALL SELECT 'part.remove', seq, json_object('messageID', message_id, 'partID', part_id)
         FROM removed_parts WHERE session_id = :session AND seq > :after
       ORDER BY seq`,
    ),
    pendingInputs: database.prepare(
      `SELECT data FROM inputs WHERE session_id = ? AND data ->> 'state' = 'pending'
       ORDER BY data ->> 'position', seq`,
    ),
    input: database.prepare("SELECT data FROM inputs WHERE session_id = ? AND id = ?"),
    waiting: database.prepare("SELECT DISTINCT session_id FROM inputs WHERE data ->> 'state' = 'pending'"),
    grants: database.prepare(
      "SELECT data FROM grants WHERE session_id = ? OR (worktree = ? AND session_id IS NULL) ORDER BY created, id",
    ),
  }

  function sequence(sessionID: string): number {
    return Number(select.sequence.get(sessionID)?.seq ?? 0)
  }

  return {
    session(id) {
      const row = select.session.get(id)
      return row && parse<Session>(row.data)
    },
    sessions(filter, among) {
      const { worktree, parentID, limit = 100 } = filter
      const conditions: string[] = []
      const values: (string | number)[] = []
      if (worktree !== undefined) {
        conditions.push("worktree = ?")
        values.push(worktree)
      }
      if (parentID === null) conditions.push("parent_id IS NULL")
      else if (parentID !== undefined) {
        conditions.push("parent_id = ?")
        values.push(parentID)
      }
      if (among) {
        conditions.push(`id IN (${among.sql})`)
        values.push(...among.values)
      }
      const where = conditions.length > 0 ? `WHERE ${conditions.join(" AND ")}` : ""
      const query = `SELECT data FROM sessions ${where} ORDER BY updated DESC, id DESC LIMIT ?`
      const rows = database.prepare(query).all(...values, limit)
      // One damaged row must not hide the other sessions.
      return rows.flatMap((row) => readSession(row.data) ?? [])
    },
    messages(
      sessionID: string,
      { after = "", before = afterAllText, limit = -1, from = "newest" }: MessagePage = {},
    ): MessageWithParts[] {
      const rows = select[from].all(sessionID, after, before, limit)
      if (from === "newest") rows.reverse()
      const byID = new Map<unknown, MessageWithParts>()
      for (const row of rows) byID.set(row.id, { message: parseRow(row, sessionID, isMessage), parts: [] })
      const [oldest, newest] = [rows.at(0)?.id, rows.at(-1)?.id]
      if (oldest === undefined || newest === undefined) return []
      for (const row of select.parts.all(sessionID, oldest, newest)) {
        byID.get(row.message_id)?.parts.push(parseRow(row, sessionID, isPart))
      }
      return [...byID.values()]
    },
    todos(sessionID) {
      const row = select.todos.get(sessionID)
      return row ? parse<Todo[]>(row.data) : []
    },
    grants({ sessionID, worktree }) {
      const rows = select.grants.all(sessionID ?? null, worktree ?? null)
      return rows.map((row) => parse<Grant>(row.data))
    },
    sequence,
    changes(sessionID, after) {
      // Clients that follow a session call this often, and usually nothing has changed.
      if (sequence(sessionID) <= after) return []
      const rows = select.changes.all({ session: sessionID, after })
      return rows.map(({ kind, seq, data }) => ({
        seq: Number(seq),
        change: changeOf(String(kind), sessionID, data),
      }))
    },
    pendingInputs: (sessionID) => select.pendingInputs.all(sessionID).map((row) => parse<Input>(row.data)),
    input(sessionID, id) {
      const row = select.input.get(sessionID, id)
      return row && parse<Input>(row.data)
    },
    sessionsWithInputs: () => select.waiting.all().map((row) => String(row.session_id)),
  }
}

function changeOf(kind: string, sessionID: string, data: unknown): SequencedChange["change"] {
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

/** The greatest code point. All ids sort before it. */
const afterAllText = "\u{10ffff}"

/** Returns undefined if the data is not a session. */
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
 * Parses the JSON of a message or part. Throws {@link DamagedRowError}, which names the row. Checks only for damage by
 * other programs or the disk, because a page has many rows.
 */
function parseRow<T>(
  { id, message_id, data }: Record<string, unknown>,
  sessionID: string,
  fits: (value: Record<string, unknown>) => value is T & Record<string, unknown>,
): T {
  const parsed = parseJson(String(data))
  if (parsed.ok && isRecord(parsed.value) && parsed.value.id === id && fits(parsed.value)) return parsed.value
  const row = message_id === undefined ? `message ${id}` : `part ${id} of message ${message_id}`
  throw new DamagedRowError(row, sessionID, parsed.ok ? "its JSON is not one" : parsed.error)
}

function isMessage(value: Record<string, unknown>): value is Message & Record<string, unknown> {
  return (value.role === "user" || value.role === "assistant") && isRecord(value.time)
}

function isPart(value: Record<string, unknown>): value is Part & Record<string, unknown> {
  const hasText = value.type !== "text" || typeof value.text === "string"
  return typeof value.type === "string" && hasText && (value.type !== "tool" || isRecord(value.state))
}

/** Parses stored JSON without validation, because it was written from a value of this type. */
function parse<T>(data: unknown): T {
  return JSON.parse(String(data)) as T
}

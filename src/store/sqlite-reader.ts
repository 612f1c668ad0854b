import type { DatabaseSync } from "node:sqlite"
import type { Message, MessageWithParts } from "../schema/message.ts"
import type { Part } from "../schema/part.ts"
import type { Grant } from "../schema/permission.ts"
import type { Session } from "../schema/session.ts"
import type { Todo } from "../schema/todo.ts"
import { isRecord, parseJson } from "../util/json.ts"
import type { MessagePage, SessionFilter } from "./store.ts"

/** Reads from the tables, with prepared statements. */
export interface SqliteReader {
  session(id: string): Session | undefined
  sessions(filter: SessionFilter): Session[]
  messages(sessionID: string, page?: MessagePage): MessageWithParts[]
  todos(sessionID: string): Todo[]
  grants(scope: { sessionID?: string; worktree?: string }): Grant[]
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
      `SELECT message_id, data FROM parts WHERE session_id = ? AND message_id BETWEEN ? AND ?
       ORDER BY message_id, id`,
    ),
    todos: database.prepare("SELECT data FROM todos WHERE session_id = ?"),
    grants: database.prepare(
      "SELECT data FROM grants WHERE session_id = ? OR (worktree = ? AND session_id IS NULL) ORDER BY created, id",
    ),
  }

  return {
    session(id) {
      const row = select.session.get(id)
      return row && parse<Session>(row.data)
    },
    sessions(filter) {
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
      for (const { id, data } of rows) byID.set(id, { message: parse<Message>(data), parts: [] })
      const [oldest, newest] = [rows.at(0)?.id, rows.at(-1)?.id]
      if (oldest === undefined || newest === undefined) return []
      for (const row of select.parts.all(sessionID, oldest, newest)) {
        byID.get(row.message_id)?.parts.push(parse<Part>(row.data))
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

/** Parses stored JSON without validation, because it was written from a value of this type. */
function parse<T>(data: unknown): T {
  return JSON.parse(String(data)) as T
}

import type { DatabaseSync } from "node:sqlite"
import type { Input } from "../schema/input.ts"
import type { MessageWithParts } from "../schema/message.ts"
import type { Grant } from "../schema/permission.ts"
import type { Session } from "../schema/session.ts"
import type { Todo } from "../schema/todo.ts"
import { afterAllText, changeOf, isMessage, isPart, parse, parseRow, readSession } from "./rows.ts"
import type { MessagePage, SequencedChange, SessionFilter } from "./store.ts"

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

/** Creates a reader and prepares its statements. Throws if the tables do not have the newest version. */
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
      // Clients that follow a session call this often, usually when nothing has changed.
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

import type { DatabaseSync } from "node:sqlite"
import type { Input } from "../schema/input.ts"
import type { MessageWithParts } from "../schema/message.ts"
import type { Grant } from "../schema/permission.ts"
import type { Session } from "../schema/session.ts"
import type { Todo } from "../schema/todo.ts"
import { afterAllText, changeOf, isMessage, isPart, listRows, parse, parseRow, selectionOf } from "./rows.ts"
import type { GrantFilter, ListedRow, MessagePage, SequencedChange, SessionFilter } from "./store.ts"

/** Reads from the tables, with prepared statements. */
export interface SqliteReader {
  session(id: string): Session | undefined
  sessions(filter: SessionFilter): Session[]
  /**
   * Returns the sessions that the filter selects. If `among` is set, selects only from the ids that this query returns.
   */
  page(filter: SessionFilter, among?: Among): ListedRow[]
  messages(sessionID: string, page?: MessagePage): MessageWithParts[]
  todos(sessionID: string): Todo[]
  grants(scope: GrantFilter): Grant[]
  sequence(sessionID: string): number
  changes(sessionID: string, after: number): SequencedChange[]
  pendingInputs(sessionID: string): Input[]
  input(sessionID: string, id: string): Input | undefined
  sessionsWithInputs(): string[]
}

/** A query for ids of sessions. */
interface Among {
  sql: string
  values: string[]
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
      "SELECT data FROM grants WHERE session_id = ? OR (worktree = ? AND (session_id IS NULL OR ?)) ORDER BY created, id",
    ),
  }

  function sequence(sessionID: string): number {
    return Number(select.sequence.get(sessionID)?.seq ?? 0)
  }

  function page(filter: SessionFilter, among?: Among): ListedRow[] {
    const { worktree, parentID, tenant, updatedUntil, places, after, limit } = selectionOf(filter)
    const conditions: string[] = []
    const values: (string | number)[] = []
    const add = (condition: string, ...given: (string | number)[]) => {
      conditions.push(condition)
      values.push(...given)
    }
    if (worktree !== undefined) add("worktree = ?", worktree)
    if (parentID === null) add("parent_id IS NULL")
    else if (parentID !== undefined) add("parent_id = ?", parentID)
    // The expression of the index.
    if (tenant !== undefined) add("CASE WHEN json_valid(data) THEN data ->> 'tenant' END = ?", tenant)
    if (updatedUntil !== undefined) add("updated <= ?", updatedUntil)
    if (places) add(`(${["false", ...places.map(() => "instr(data, ?) > 0")].join(" OR ")})`, ...places)
    if (after) add("(updated, id) < (?, ?)", after.updated, after.id)
    if (among) add(`id IN (${among.sql})`, ...among.values)
    const where = conditions.length > 0 ? `WHERE ${conditions.join(" AND ")}` : ""
    const query = `SELECT id, updated, data FROM sessions ${where} ORDER BY updated DESC, id DESC LIMIT ?`
    const rows = database.prepare(query).all(...values, limit)
    const { listed, last } = listRows(rows)
    // One damaged row must not hide the other sessions.
    const missing = rows.length === limit ? limit - listed.length : 0
    return missing > 0 ? [...listed, ...page({ ...filter, after: last, limit: missing }, among)] : listed
  }

  return {
    session(id) {
      const row = select.session.get(id)
      return row && parse<Session>(row.data)
    },
    page,
    sessions: (filter) => page(filter).map(({ session }) => session),
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
    grants({ sessionID, worktree, withSessions = false }) {
      const rows = select.grants.all(sessionID ?? null, worktree ?? null, Number(withSessions))
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

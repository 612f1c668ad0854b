import type { Input } from "../schema/input.ts"
import type { MessageWithParts } from "../schema/message.ts"
import type { Grant } from "../schema/permission.ts"
import type { Session } from "../schema/session.ts"
import type { Todo } from "../schema/todo.ts"
import type { PostgresConnection } from "./postgres-connection.ts"
import { afterAllText, changeOf, isMessage, isPart, listRows, parse, parseRow, selectionOf } from "./rows.ts"
import type {
  CurrentInputs,
  GrantFilter,
  LeaseHolder,
  ListedRow,
  MessagePage,
  SequencedChange,
  SessionFilter,
} from "./store.ts"

/** Reads from the tables. Each function runs one statement, so that its result is consistent. */
export interface PostgresReader {
  session(id: string): Promise<Session | undefined>
  sessions(filter: SessionFilter): Promise<Session[]>
  /**
   * Returns the sessions that the filter selects. `among` is a query for the ids to select from. Its parameters start
   * with $10.
   */
  page(filter: SessionFilter, among?: Among): Promise<ListedRow[]>
  messages(sessionID: string, page?: MessagePage): Promise<MessageWithParts[]>
  todos(sessionID: string): Promise<Todo[]>
  grants(scope: GrantFilter): Promise<Grant[]>
  sequence(sessionID: string): Promise<number>
  changes(sessionID: string, after: number): Promise<SequencedChange[]>
  pendingInputs(sessionID: string): Promise<Input[]>
  /**
   * Returns a session's pending inputs, the input with the id `named`, the lease holder, and the number of the
   * session's latest change.
   */
  currentInputs(sessionID: string, named: string | undefined): Promise<CurrentInputs & { seq: number }>
  sessionsWithInputs(): Promise<string[]>
}

/** A query for ids of sessions. */
interface Among {
  sql: string
  values: readonly string[]
}

/** Creates a reader for an open database's tables. */
export function createPostgresReader({ query, schema }: PostgresConnection): PostgresReader {
  const changesOf = (kind: string, table: string, owner = "session_id") =>
    `SELECT '${kind}' AS kind, seq, data FROM ${schema}.${table} WHERE ${owner} = $1 AND seq > $2 AND EXISTS (SELECT FROM changed)`

  const statements = {
    sessions: (among: string) =>
      `SELECT id, updated, data FROM ${schema}.sessions
       WHERE ($1::text IS NULL OR worktree = $1) AND ($2::text IS NULL OR parent_id = $2)
         AND (NOT $3::boolean OR parent_id IS NULL) AND ($5::text IS NULL OR tenant = $5)
         AND ($6::float8 IS NULL OR updated <= $6) AND ($7::float8 IS NULL OR (updated, id) < ($7, $8))
         AND ($9::text[] IS NULL OR EXISTS (SELECT FROM unnest($9::text[]) place WHERE strpos(data, place) > 0))
         ${among}
       ORDER BY updated DESC, id DESC LIMIT $4`,
    messages: (order: "ASC" | "DESC") =>
      `WITH page AS MATERIALIZED (
         SELECT id, data FROM ${schema}.messages WHERE session_id = $1 AND id > $2 AND id < $3
         ORDER BY id ${order} LIMIT $4)
       SELECT id AS message_id, NULL AS part_id, data FROM page
       UNION ALL SELECT p.message_id, p.id, p.data FROM ${schema}.parts p
         WHERE p.session_id = $1 AND p.message_id BETWEEN (SELECT min(id) FROM page) AND (SELECT max(id) FROM page)
       ORDER BY message_id, part_id NULLS FIRST`,
    // Clients that follow a session ask often. If nothing has changed, which is the usual case, the tables are not
    // read.
    changes: `WITH changed AS MATERIALIZED (SELECT FROM ${schema}.sequences WHERE session_id = $1 AND seq > $2) ${[
      changesOf("session", "sessions", "id"),
      changesOf("message", "messages"),
      changesOf("part", "parts"),
      changesOf("todos", "todos"),
      changesOf("input", "inputs"),
      `SELECT 'part.remove', seq, json_build_object('messageID', message_id, 'partID', part_id)::text
       FROM ${schema}.removed_parts WHERE session_id = $1 AND seq > $2 AND EXISTS (SELECT FROM changed) ORDER BY seq`,
    ].join(" UNION ALL ")}`,
    currentInputs: `SELECT s.seq, l.holder, i.id, i.state, i.data FROM ${schema}.sequences s
      LEFT JOIN ${schema}.leases l USING (session_id)
      LEFT JOIN ${schema}.inputs i ON i.session_id = s.session_id AND (i.state = 'pending' OR i.id = $2)
      WHERE s.session_id = $1 ORDER BY i.position, i.seq`,
  }

  async function page(filter: SessionFilter, among?: Among): Promise<ListedRow[]> {
    const { worktree, parentID, tenant, updatedUntil, places, after, limit } = selectionOf(filter)
    const values = [
      ...[worktree ?? null, parentID ?? null, parentID === null, limit, tenant ?? null, updatedUntil ?? null],
      ...[after?.updated ?? null, after?.id ?? null, places ?? null, ...(among?.values ?? [])],
    ]
    const rows = await query(statements.sessions(among ? `AND id IN (${among.sql})` : ""), values)
    const { listed, last } = listRows(rows)
    // One damaged row must not hide the other sessions.
    const missing = rows.length === limit ? limit - listed.length : 0
    return missing > 0
      ? [...listed, ...(await page({ ...filter, after: last, limit: missing }, among))]
      : listed
  }

  return {
    async session(id) {
      const [row] = await query(`SELECT data FROM ${schema}.sessions WHERE id = $1`, [id])
      return row && parse<Session>(row.data)
    },
    page,
    sessions: async (filter) => (await page(filter)).map(({ session }) => session),
    async messages(sessionID, { after = "", before = afterAllText, limit, from = "newest" } = {}) {
      const sql = statements.messages(from === "newest" ? "DESC" : "ASC")
      const found: MessageWithParts[] = []
      for (const row of await query(sql, [sessionID, after, before, limit ?? null])) {
        if (row.part_id === null)
          found.push({
            message: parseRow({ id: row.message_id, data: row.data }, sessionID, isMessage),
            parts: [],
          })
        else found.at(-1)?.parts.push(parseRow({ ...row, id: row.part_id }, sessionID, isPart))
      }
      return found
    },
    async todos(sessionID) {
      const [row] = await query(`SELECT data FROM ${schema}.todos WHERE session_id = $1`, [sessionID])
      return row ? parse<Todo[]>(row.data) : []
    },
    async grants({ sessionID, worktree, withSessions = false }) {
      const rows = await query(
        `SELECT data FROM ${schema}.grants WHERE session_id = $1
         OR (worktree = $2 AND (session_id IS NULL OR $3)) ORDER BY created, id`,
        [sessionID ?? null, worktree ?? null, withSessions],
      )
      return rows.map((row) => parse<Grant>(row.data))
    },
    async sequence(sessionID) {
      const [row] = await query(`SELECT seq FROM ${schema}.sequences WHERE session_id = $1`, [sessionID])
      return Number(row?.seq ?? 0)
    },
    async changes(sessionID, after) {
      const rows = await query(statements.changes, [sessionID, after])
      return rows.map(({ kind, seq, data }) => ({
        seq: Number(seq),
        change: changeOf(String(kind), sessionID, data),
      }))
    },
    async pendingInputs(sessionID) {
      const rows = await query(
        `SELECT data FROM ${schema}.inputs WHERE session_id = $1 AND state = 'pending' ORDER BY position, seq`,
        [sessionID],
      )
      return rows.map((row) => parse<Input>(row.data))
    },
    async currentInputs(sessionID, named) {
      const rows = await query(statements.currentInputs, [sessionID, named ?? null])
      const inputs = rows.filter(({ id }) => id !== null)
      const chosen = inputs.find(({ id }) => id === named)
      const holder = rows[0]?.holder
      return {
        seq: Number(rows[0]?.seq ?? 0),
        holder: typeof holder === "string" ? parse<LeaseHolder>(holder) : undefined,
        pending: inputs.filter(({ state }) => state === "pending").map((row) => parse<Input>(row.data)),
        named: chosen && parse<Input>(chosen.data),
      }
    },
    async sessionsWithInputs() {
      const rows = await query(`SELECT DISTINCT session_id FROM ${schema}.inputs WHERE state = 'pending'`)
      return rows.map((row) => String(row.session_id))
    },
  }
}

import { type StoredRequest, withAnswer } from "../schema/request.ts"
import { currentTime } from "../util/time.ts"
import type { PostgresConnection } from "./postgres-connection.ts"
import { parse } from "./rows.ts"
import { type ControlChange, LeaseLostError, type Store } from "./store.ts"

/** The store's methods for requests. */
export interface PostgresRequests
  extends Pick<Store, "openRequest" | "requests" | "request" | "answerRequest"> {
  /** Deletes unanswered requests whose leases are no longer valid. */
  removeStale(): Promise<void>
}

/** Creates the methods for requests. Each change and its notification are one statement. */
export function createPostgresRequests({ query, schema, channel }: PostgresConnection): PostgresRequests {
  /** SQL condition for a request `r` whose lease is still valid. */
  const isLeased = `EXISTS (SELECT FROM ${schema}.leases l WHERE l.session_id = r.session_id AND l.epoch = r.epoch
    AND l.expires_at > clock_timestamp())`

  async function request(id: string): Promise<StoredRequest | undefined> {
    const [row] = await query(`SELECT data FROM ${schema}.requests WHERE id = $1`, [id])
    return row && parse<StoredRequest>(row.data)
  }

  return {
    request,
    async openRequest(opened, lease) {
      const { id, sessionID } = opened.asked
      const rows = await query(
        `WITH stored AS (
           INSERT INTO ${schema}.requests (id, session_id, epoch, is_open, data)
           SELECT $1, s.session_id, s.epoch, true, $4 FROM ${schema}.sequences s
           WHERE s.session_id = $2 AND s.epoch = $3
           -- If the statement was sent twice, the request may have an answer.
           ON CONFLICT (id) DO UPDATE SET id = excluded.id RETURNING id)
         SELECT pg_notify($5, $6) FROM stored`,
        [
          id,
          sessionID,
          lease.epoch,
          JSON.stringify(opened),
          channel,
          controlPayload({ sessionID, what: "request" }),
        ],
      )
      if (rows.length === 0) throw new LeaseLostError(sessionID)
    },
    async requests() {
      const rows = await query(
        `SELECT data FROM ${schema}.requests r WHERE is_open AND ${isLeased} ORDER BY substr(id, 4)`,
      )
      return rows.map((row) => parse<StoredRequest>(row.data))
    },
    async answerRequest(id, answer) {
      const present = await request(id)
      if (!present || present.answer) return present
      const { sessionID } = present.asked
      const answered = withAnswer(present, answer, currentTime())
      await query(
        `WITH stored AS (
           UPDATE ${schema}.requests r SET is_open = false, data = $2 WHERE id = $1 AND is_open AND ${isLeased}
           RETURNING id)
         SELECT pg_notify($3, $4) FROM stored`,
        [id, JSON.stringify(answered), channel, controlPayload({ sessionID, what: "request" })],
      )
      // Another process may have answered first. If this statement was sent twice, its first execution stored the
      // answer.
      const stored = await request(id)
      return stored?.answer && stored
    },
    async removeStale() {
      await query(
        `DELETE FROM ${schema}.requests r WHERE is_open AND NOT EXISTS (
           SELECT FROM ${schema}.leases l WHERE l.session_id = r.session_id AND l.epoch = r.epoch)`,
      )
    },
  }
}

/** Numbers that mark a notification as a control change. Numbers of other changes start at 1. */
const marks = { request: 0, lease: -1 } as const

/** Returns the notification payload for a control change. */
export function controlPayload({ sessionID, what }: ControlChange): string {
  return JSON.stringify({ [sessionID]: marks[what] })
}

/** Returns the control change that a notification reports, or undefined if it reports another change. */
export function controlChangeOf(payload: Readonly<Record<string, unknown>>): ControlChange | undefined {
  const [[sessionID, mark] = [""]] = Object.entries(payload)
  if (mark !== marks.request && mark !== marks.lease) return undefined
  return { sessionID, what: mark === marks.request ? "request" : "lease" }
}

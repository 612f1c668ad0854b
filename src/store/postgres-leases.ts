import { hostname } from "node:os"
import type { Input } from "../schema/input.ts"
import type { Session } from "../schema/session.ts"
import { newId } from "../util/id.ts"
import { identifyProcess } from "../util/process-table.ts"
import type { PostgresWriter } from "./postgres-changes.ts"
import type { PostgresConnection } from "./postgres-connection.ts"
import { controlPayload } from "./postgres-requests.ts"
import { parse } from "./rows.ts"
import {
  type AbandonedSession,
  type Lease,
  type LeaseHolder,
  type LeaseLimit,
  type LeaseResult,
  type Reserved,
  type Reserving,
  StoreError,
  type TransactionQuery,
} from "./store.ts"
import { TenantLimitError } from "./tenants.ts"

/**
 * A store's leases. A lease expires after its time to live, measured by the server's clock, unless this process renews
 * it. One statement renews all of this process's leases, at intervals of a third of that time.
 */
export interface PostgresLeases {
  /** Leases a session. Throws `TenantLimitError` if the limit is reached. */
  take(sessionID: string, holder: LeaseHolder, options?: { limit?: LeaseLimit }): Promise<LeaseResult>
  /** See `Store.reserve`. */
  reserve(reserving: Reserving, query: TransactionQuery): Promise<() => Reserved[]>
  release(lease: Lease, options?: { passesOn?: boolean }): Promise<void>
  holder(sessionID: string): Promise<LeaseHolder | undefined>
  /** Asks the current holder to stop. See `Store.stop`. */
  stop(sessionID: string): Promise<Lease | undefined>
  isStopping(lease: Lease): Promise<boolean>
  /** See `Store.abandoned`. */
  abandoned(sessionID?: string): Promise<AbandonedSession[]>
  /**
   * Takes over each expired lease, except leases that another worker should take over. Calls `settle`, and then ends
   * the lease or lets it expire again. If `settle` rejects, the lease expires again, and the error is thrown.
   */
  takeExpired(settle: (lease: Lease) => Promise<"end" | "expire">): Promise<void>
  /** Aborts the `lost` signal of a lease that another holder has replaced. */
  lost(lease: Lease): void
  /** Stops renewing a lease that a write has ended. */
  ended(lease: Lease): void
  /** Stops renewing leases. Leases that are still held expire. */
  end(): void
}

/**
 * Time in milliseconds for which a session with an expired lease waits for another worker. Long enough to restart a
 * cluster's workers.
 */
const workerMs = 3_600_000

/** SQL condition for a lease whose worker was not asked to stop. */
const isWorker = "((holder::json ->> 'isWorker')::boolean AND stop_epoch IS DISTINCT FROM epoch)"

/**
 * Creates a store's leases. `ttlMs` is the time to live in milliseconds. Leases are taken and ended together with other
 * writes.
 */
export function createPostgresLeases(
  { query, schema, channel }: PostgresConnection,
  {
    ttlMs,
    takeLease,
    takeLeasesIn,
    endLease,
  }: { ttlMs: number } & Pick<PostgresWriter, "takeLease" | "takeLeasesIn" | "endLease">,
): PostgresLeases {
  /** Leases that this process holds, keyed by number. */
  const held = new Map<number, { controller: AbortController; renewed: number }>()
  /** Leases that were taken in advance and that no engine uses yet, keyed by session. */
  const reserved = new Map<string, Lease>()
  const ttl = `${ttlMs} milliseconds`
  let timer: NodeJS.Timeout | undefined
  let isRenewing = false

  async function take(
    sessionID: string,
    holder: LeaseHolder,
    { limit, replaces }: { limit?: LeaseLimit; replaces?: number } = {},
  ): Promise<LeaseResult> {
    const early = reserved.get(sessionID)
    if (early?.holder.id === holder.id && !early.lost?.aborted && replaces === undefined) {
      reserved.delete(sessionID)
      return { isHeld: true, lease: early }
    }
    const sent = performance.now()
    const given = [sessionID, holder.id, JSON.stringify(holder), ttl]
    let row: { taken?: unknown; present?: unknown; running?: unknown } | undefined
    if (limit) {
      const values = [...given, limit.tenant, limit.sessions]
      ;[row] = await query(`SELECT * FROM ${schema}.take_tenant_lease($1, $2, $3, $4, $5, $6)`, values)
      if (row?.running != null) throw new TenantLimitError(limit.tenant, "sessions", limit.sessions)
    } else if (replaces !== undefined)
      [row] = await query(`SELECT * FROM ${schema}.take_lease($1, $2, $3, $4, $5)`, [...given, replaces])
    else row = await takeLease({ sessionID, holder, ttl })
    if (row?.taken == null)
      return { isHeld: false, holder: typeof row?.present === "string" ? parse(row.present) : holder }
    return { isHeld: true, lease: hold(sessionID, holder, Number(row.taken), sent) }
  }

  /** Starts to renew a lease. `sent` is the time at which the statement that took it was sent. */
  function hold(sessionID: string, holder: LeaseHolder, epoch: number, sent: number): Lease {
    const controller = new AbortController()
    const entry = { controller, renewed: sent }
    held.set(epoch, entry)
    timer ??= setInterval(() => void renew(), ttlMs / 3).unref()
    return {
      ...{ sessionID, holder, epoch, lost: controller.signal },
      isCurrent: () => held.get(epoch) === entry && performance.now() - entry.renewed < ttlMs,
    }
  }

  async function reserve(
    { sessionIDs, holderOf, inputsOf }: Reserving,
    run: TransactionQuery,
  ): Promise<() => Reserved[]> {
    const rows = await run(
      `SELECT s.data, q.seq, array(SELECT i.data FROM ${schema}.inputs i WHERE i.session_id = s.id
         AND i.state = 'pending' ORDER BY i.position, i.seq) AS inputs
       FROM ${schema}.sessions s JOIN ${schema}.sequences q ON q.session_id = s.id
       LEFT JOIN ${schema}.leases l ON l.session_id = s.id AND l.expires_at > clock_timestamp()
       WHERE s.id = ANY ($1) AND s.tenant IS NULL AND l.session_id IS NULL`,
      [sessionIDs],
    )
    const takings = rows.flatMap(({ data, seq, inputs }) => {
      const session = parse<Session>(data)
      const holder = holderOf(session)
      if (!holder) return []
      const pending = (inputs as unknown[]).map((input) => parse<Input>(input))
      const changes = inputsOf(session.id, pending).map(
        (input) => ({ kind: "input", input: { ...input, claimedBy: holder.id } }) as const,
      )
      if (changes.length === 0) return []
      const takes = { sessionID: session.id, holder, ttl }
      return [{ session, holder, takes, changes, expected: Number(seq) }]
    })
    if (takings.length === 0) return () => []
    const sent = performance.now()
    const taken = await takeLeasesIn(async (text, values) => run(text, values), takings)
    if (taken.some((each) => each.taken == null))
      throw new StoreError("Another process has leased one of the sessions. Try again.")
    return () =>
      takings.map(({ session, holder }, index) => {
        const lease = { ...hold(session.id, holder, Number(taken[index]?.taken), sent), isReserved: true }
        reserved.set(session.id, lease)
        const end = async () => {
          if (reserved.get(session.id) !== lease) return
          reserved.delete(session.id)
          await release(lease)
        }
        return { session, release: end }
      })
  }

  /** Renews all leases. If the server cannot be reached, the next call tries again. */
  async function renew(): Promise<void> {
    if (isRenewing) return
    isRenewing = true
    const epochs = [...held.keys()]
    const sent = performance.now()
    try {
      // Skips leases that a write is ending, because that write can wait for other leases.
      const rows = await query(
        `WITH free AS (
           SELECT session_id FROM ${schema}.leases WHERE epoch = ANY ($1::bigint[]) FOR UPDATE SKIP LOCKED),
         renewed AS (
           UPDATE ${schema}.leases l SET expires_at = clock_timestamp() + $2::interval
           FROM free WHERE l.session_id = free.session_id RETURNING l.epoch)
         SELECT l.epoch, r.epoch IS NOT NULL AS renewed
         FROM ${schema}.leases l LEFT JOIN renewed r ON r.epoch = l.epoch WHERE l.epoch = ANY ($1::bigint[])`,
        [epochs, ttl],
      )
      const present = new Map(rows.map(({ epoch, renewed }) => [Number(epoch), renewed === true]))
      for (const epoch of epochs) {
        const entry = held.get(epoch)
        if (entry && present.get(epoch)) entry.renewed = sent
        if (!present.has(epoch)) drop(epoch)?.abort()
      }
    } catch {
      // If a lease is lost in the meantime, the run ends at its next write.
    }
    isRenewing = false
  }

  function drop(epoch: number): AbortController | undefined {
    const entry = held.get(epoch)
    held.delete(epoch)
    if (held.size === 0) end()
    return entry?.controller
  }

  async function release(lease: Lease, { passesOn = false } = {}): Promise<void> {
    drop(lease.epoch)
    await (passesOn ? expire(lease.epoch) : endLease(lease))
  }

  async function expire(epoch: number): Promise<void> {
    await query(`UPDATE ${schema}.leases SET expires_at = clock_timestamp() WHERE epoch = $1`, [epoch])
  }

  function end(): void {
    clearInterval(timer)
    timer = undefined
  }

  return {
    take,
    reserve,
    release,
    async holder(sessionID) {
      const [row] = await query(
        `SELECT holder FROM ${schema}.leases WHERE session_id = $1 AND expires_at > clock_timestamp()`,
        [sessionID],
      )
      return row && parse<LeaseHolder>(row.holder)
    },
    async stop(sessionID) {
      const [row] = await query(
        `WITH stopped AS (
           UPDATE ${schema}.leases SET stop_epoch = epoch
           WHERE session_id = $1 AND expires_at > clock_timestamp() RETURNING holder, epoch)
         SELECT holder, epoch, pg_notify($2, $3) FROM stopped`,
        [sessionID, channel, controlPayload({ sessionID, what: "lease" })],
      )
      return row && { sessionID, holder: parse<LeaseHolder>(row.holder), epoch: Number(row.epoch) }
    },
    async isStopping({ sessionID, epoch }) {
      const rows = await query(
        `SELECT FROM ${schema}.leases WHERE session_id = $1 AND epoch = $2 AND stop_epoch = epoch`,
        [sessionID, epoch],
      )
      return rows.length > 0
    },
    async abandoned(sessionID) {
      const rows = await query(
        `SELECT session_id, epoch, extract(epoch FROM expires_at) * 1000 AS expired FROM ${schema}.leases
         WHERE expires_at <= clock_timestamp() AND ${isWorker} AND ($1::text IS NULL OR session_id = $1)`,
        [sessionID ?? null],
      )
      return rows.map(({ session_id, epoch, expired }) => ({
        sessionID: String(session_id),
        epoch: Number(epoch),
        expired: Number(expired),
      }))
    },
    async takeExpired(settle) {
      const expired = await query(
        `SELECT session_id, epoch FROM ${schema}.leases WHERE expires_at <= clock_timestamp()
         AND (${isWorker} IS NOT TRUE OR expires_at <= clock_timestamp() - $1::interval)`,
        [`${workerMs} milliseconds`],
      )
      const own = { id: newId("eng"), host: hostname(), ...identifyProcess() }
      for (const { session_id, epoch } of expired) {
        // Another process may have taken over or deleted the session.
        const taken = await take(String(session_id), own, { replaces: Number(epoch) }).catch(() => undefined)
        if (!taken?.isHeld) continue
        let next: "end" | "expire" = "expire"
        try {
          next = await settle(taken.lease)
        } finally {
          await release(taken.lease, { passesOn: next === "expire" })
        }
      }
    },
    lost({ epoch }) {
      drop(epoch)?.abort()
    },
    ended: ({ epoch }) => void drop(epoch),
    end,
  }
}

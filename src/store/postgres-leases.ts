import { hostname } from "node:os"
import { newId } from "../util/id.ts"
import { identifyProcess } from "../util/process-table.ts"
import type { PostgresWriter } from "./postgres-changes.ts"
import type { PostgresConnection } from "./postgres-connection.ts"
import { controlPayload } from "./postgres-requests.ts"
import { parse } from "./rows.ts"
import type { AbandonedSession, Lease, LeaseHolder, LeaseLimit, LeaseResult } from "./store.ts"
import { TenantLimitError } from "./tenants.ts"

/**
 * The leases of a store. A lease expires after its time to live, measured by the server's clock, unless this process
 * renews it. One statement renews all leases of this process, at intervals of a third of that time.
 */
export interface PostgresLeases {
  /** Leases a session. Throws `TenantLimitError` if the limit is reached. */
  take(sessionID: string, holder: LeaseHolder, options?: { limit?: LeaseLimit }): Promise<LeaseResult>
  release(lease: Lease, options?: { passesOn?: boolean }): Promise<void>
  holder(sessionID: string): Promise<LeaseHolder | undefined>
  /** Asks the current holder to stop. See `Store.stop`. */
  stop(sessionID: string): Promise<Lease | undefined>
  isStopping(lease: Lease): Promise<boolean>
  /** See `Store.abandoned`. */
  abandoned(sessionID?: string): Promise<AbandonedSession[]>
  /**
   * Takes over each expired lease, except leases that another worker should take over. Calls `settle`, and then ends
   * the lease. If `settle` rejects, the lease expires again.
   */
  takeExpired(settle: (lease: Lease) => Promise<void>): Promise<void>
  /** Aborts the `lost` signal of a lease that another holder has replaced. */
  lost(lease: Lease): void
  /** Stops renewing leases. Leases that are still held expire. */
  end(): void
}

/**
 * Time in milliseconds for which the session of an expired lease waits for another worker. Long enough to restart the
 * workers of a cluster.
 */
const workerMs = 3_600_000

/** SQL condition for the lease of a worker that was not asked to stop. */
const isWorker = "((holder::json ->> 'isWorker')::boolean AND stop_epoch IS DISTINCT FROM epoch)"

/**
 * Creates the leases of a store. `ttlMs` is the time to live in milliseconds. Leases are taken and ended together with
 * other writes.
 */
export function createPostgresLeases(
  { query, schema, channel }: PostgresConnection,
  { ttlMs, takeLease, endLease }: { ttlMs: number } & Pick<PostgresWriter, "takeLease" | "endLease">,
): PostgresLeases {
  /** Leases that this process holds, by number. */
  const held = new Map<number, AbortController>()
  const ttl = `${ttlMs} milliseconds`
  let timer: NodeJS.Timeout | undefined
  let isRenewing = false

  async function take(
    sessionID: string,
    holder: LeaseHolder,
    { limit, replaces }: { limit?: LeaseLimit; replaces?: number } = {},
  ): Promise<LeaseResult> {
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
    const epoch = Number(row.taken)
    const controller = new AbortController()
    held.set(epoch, controller)
    timer ??= setInterval(() => void renew(), ttlMs / 3).unref()
    return { isHeld: true, lease: { sessionID, holder, epoch, lost: controller.signal } }
  }

  /** Renews all leases. If the server cannot be reached, the next call tries again. */
  async function renew(): Promise<void> {
    if (isRenewing) return
    isRenewing = true
    const epochs = [...held.keys()]
    try {
      const rows = await query(
        `UPDATE ${schema}.leases SET expires_at = clock_timestamp() + $2::interval
         WHERE epoch = ANY ($1::bigint[]) RETURNING epoch`,
        [epochs, ttl],
      )
      const renewed = new Set(rows.map(({ epoch }) => Number(epoch)))
      for (const epoch of epochs) if (!renewed.has(epoch)) drop(epoch)?.abort()
    } catch {
      // If a lease is lost in the meantime, the run ends at its next write.
    }
    isRenewing = false
  }

  function drop(epoch: number): AbortController | undefined {
    const controller = held.get(epoch)
    held.delete(epoch)
    if (held.size === 0) end()
    return controller
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
        try {
          await settle(taken.lease)
        } catch (error) {
          drop(taken.lease.epoch)
          await expire(taken.lease.epoch)
          throw error
        }
        await release(taken.lease)
      }
    },
    lost({ epoch }) {
      drop(epoch)?.abort()
    },
    end,
  }
}

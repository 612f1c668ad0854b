import type { DatabaseSync } from "node:sqlite"
import type { TenantUsage, UsageRecord } from "./tenants.ts"

/** Counts usage by tenant, with prepared statements. */
export interface SqliteTenants {
  /** Returns the ids of a tenant's leased sessions, except subagent sessions. */
  leased(tenant: string): string[]
  /** Stores a request's usage. Call this within a transaction. */
  addUsage(usage: UsageRecord): void
  /** Returns a tenant's usage, without the number of running sessions. */
  usage(tenant: string, day: number): Omit<TenantUsage, "running">
}

/** SQL expression for the tenant of a session row `s`, as in the index. */
const tenantOf = "CASE WHEN json_valid(s.data) THEN s.data ->> 'tenant' END"

/** Prepares the statements. Throws if the tables do not have the newest version. */
export function createSqliteTenants(database: DatabaseSync): SqliteTenants {
  const leased = database.prepare(
    `SELECT l.session_id AS id FROM sessions s JOIN leases l ON l.session_id = s.id
     WHERE ${tenantOf} = ? AND s.parent_id IS NULL`,
  )
  const outdated = database.prepare("DELETE FROM usage WHERE tenant = ? AND day < ?")
  const put = database.prepare(
    `INSERT INTO usage (tenant, day, id, tokens, cost) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (tenant, day, id) DO UPDATE SET tokens = excluded.tokens, cost = excluded.cost`,
  )
  const sum = database.prepare(
    "SELECT coalesce(sum(tokens), 0) AS tokens, coalesce(sum(cost), 0) AS cost FROM usage WHERE tenant = ? AND day = ?",
  )
  const queued = database.prepare(
    `SELECT count(*) AS n FROM sessions s JOIN inputs i ON i.session_id = s.id AND i.data ->> 'state' = 'pending'
     WHERE ${tenantOf} = ?`,
  )
  return {
    leased: (tenant) => leased.all(tenant).map(({ id }) => String(id)),
    addUsage({ tenant, day, id, tokens, cost }) {
      outdated.run(tenant, day - 1)
      put.run(tenant, day, id, tokens, cost)
    },
    usage(tenant, day) {
      const { tokens, cost } = sum.get(tenant, day) ?? {}
      return { queued: Number(queued.get(tenant)?.n), tokens: Number(tokens), cost: Number(cost) }
    },
  }
}

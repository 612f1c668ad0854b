import type { PostgresConnection } from "./postgres-connection.ts"
import type { TenantUsage, UsageRecord } from "./tenants.ts"

/** Creates the functions that count usage by tenant. */
export function createPostgresTenants({ query, schema }: Pick<PostgresConnection, "query" | "schema">) {
  return {
    async addUsage({ tenant, day, id, tokens, cost }: UsageRecord): Promise<void> {
      await query(
        `WITH outdated AS (DELETE FROM ${schema}.usage WHERE tenant = $1 AND day < $2::int - 1)
         INSERT INTO ${schema}.usage (tenant, day, id, tokens, cost) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (tenant, day, id) DO UPDATE SET tokens = excluded.tokens, cost = excluded.cost`,
        [tenant, day, id, tokens, cost],
      )
    },
    async usage(tenant: string, day: number): Promise<TenantUsage> {
      const [row] = await query(
        `SELECT
           (SELECT count(*) FROM ${schema}.leases l JOIN ${schema}.sessions s ON s.id = l.session_id
            WHERE s.tenant = $1 AND s.parent_id IS NULL AND l.expires_at > clock_timestamp()) AS running,
           (SELECT count(*) FROM ${schema}.inputs i JOIN ${schema}.sessions s ON s.id = i.session_id
            WHERE s.tenant = $1 AND i.state = 'pending') AS queued,
           coalesce(sum(tokens), 0) AS tokens, coalesce(sum(cost), 0) AS cost
         FROM ${schema}.usage WHERE tenant = $1 AND day = $2`,
        [tenant, day],
      )
      const { running, queued, tokens, cost } = row ?? {}
      return {
        running: Number(running),
        queued: Number(queued),
        tokens: Number(tokens),
        cost: Number(cost),
      }
    },
  }
}

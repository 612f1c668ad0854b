import { dayMs } from "../util/sweep.ts"
import { type ContentLimits, type ContentStore, hashOf, isHash } from "./content-store.ts"
import type { PostgresWriter } from "./postgres-changes.ts"
import type { PostgresConnection } from "./postgres-connection.ts"

/**
 * Creates the {@link ContentStore} in the database of the sessions. If the database fails, its methods throw
 * `StoreError`.
 */
export function createPostgresContents(
  { query, schema }: Pick<PostgresConnection, "query" | "schema">,
  { putContent }: Pick<PostgresWriter, "putContent">,
  { fileBytes, totalBytes, days }: ContentLimits,
): ContentStore {
  return {
    isShared: true,
    fileBytes,
    async put(bytes) {
      if (bytes.length > fileBytes) return undefined
      const hash = hashOf(bytes)
      // Most contents are already stored, because the content after a change is also the content before the next one.
      const [known] = await query(
        `SELECT used < now() - interval '1 hour' AS is_old FROM ${schema}.contents WHERE hash = $1`,
        [hash],
      )
      if (known?.is_old === false) return hash
      await putContent({ hash, bytes })
      return hash
    },
    async get(hash) {
      if (!isHash(hash)) return undefined
      const [row] = await query(`SELECT data FROM ${schema}.contents WHERE hash = $1`, [hash])
      const bytes: unknown = row?.data
      return bytes instanceof Uint8Array && hashOf(bytes) === hash ? bytes : undefined
    },
    async sweep(now = Date.now()) {
      await query(
        `DELETE FROM ${schema}.contents WHERE hash IN (
           SELECT hash FROM (
             SELECT hash, used, sum(size) OVER (ORDER BY used DESC, hash) AS total FROM ${schema}.contents
           ) AS ordered
           WHERE total > $1::double precision OR used < to_timestamp($2::double precision)
         )`,
        [totalBytes, (now - days * dayMs) / 1000],
      )
    },
  }
}

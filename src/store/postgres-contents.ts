import { dayMs } from "../util/sweep.ts"
import { type ContentLimits, type ContentStore, hashOf, isHash } from "./content-store.ts"
import type { PostgresWriter } from "./postgres-changes.ts"
import type { PostgresConnection } from "./postgres-connection.ts"

/** Maximum size in bytes of content that is written without first checking whether it is already stored. */
const smallBytes = 8192

/** Creates the {@link ContentStore} in the session database. If the database fails, its methods throw `StoreError`. */
export function createPostgresContents(
  { query, schema }: Pick<PostgresConnection, "query" | "schema">,
  { putContent, noteContent, settled }: Pick<PostgresWriter, "putContent" | "noteContent" | "settled">,
  { fileBytes, totalBytes, days }: ContentLimits,
): ContentStore {
  async function storeWith(
    bytes: Uint8Array,
    write: (content: { hash: string; bytes: Uint8Array }) => Promise<void>,
  ): Promise<string | undefined> {
    if (bytes.length > fileBytes) return undefined
    const hash = hashOf(bytes)
    if (bytes.length <= smallBytes || !(await isRecent(hash))) await write({ hash, bytes })
    return hash
  }

  /**
   * Returns true if the content is stored and was used within the last hour. This is usually the case, because the
   * content after a change is also the content before the next one.
   */
  async function isRecent(hash: string): Promise<boolean> {
    const [known] = await query(
      `SELECT used < now() - interval '1 hour' AS is_old FROM ${schema}.contents WHERE hash = $1`,
      [hash],
    )
    return known?.is_old === false
  }

  return {
    isShared: true,
    fileBytes,
    put: (bytes) => storeWith(bytes, putContent),
    note: (bytes) => storeWith(bytes, noteContent),
    async get(hash) {
      if (!isHash(hash)) return undefined
      await settled()
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

import { createContentDirectory } from "../store/content-directory.ts"
import { type ContentStore, defaultContentLimits } from "../store/content-store.ts"
import type { Store } from "../store/store.ts"
import type { RetentionLimits } from "./housekeeping.ts"

/**
 * Opens PostgreSQL if `database` is a URL, otherwise the SQLite file. Loads each module only when needed, because not
 * every engine uses a database.
 */
export async function openDatabase({ database, file }: { database?: string; file: string }): Promise<Store> {
  if (database) {
    const { openPostgresStore } = await import("../store/postgres.ts")
    return openPostgresStore(database)
  }
  const { openSqliteStore } = await import("../store/sqlite.ts")
  return openSqliteStore(file)
}

/**
 * Opens the store for file contents: the given store, or S3-compatible storage if `contents` is a URL. Without
 * `contents`, opens the session database if it can store contents, and otherwise the directory. The size limit in
 * `retention` applies only to the directory, because one machine must not remove contents that other machines need.
 */
export async function openContents({
  contents,
  store,
  directory,
  retention,
  environment,
}: {
  contents: string | ContentStore | undefined
  store: Store
  directory: string
  retention: RetentionLimits
  environment: Readonly<Record<string, string | undefined>>
}): Promise<ContentStore> {
  if (typeof contents === "object") return contents
  const { days, megabytes } = retention
  const shared = { ...defaultContentLimits, days, totalBytes: Number.POSITIVE_INFINITY }
  if (contents) {
    const { openS3Contents } = await import("../store/s3-contents.ts")
    return openS3Contents(contents, shared, environment)
  }
  const own = { ...defaultContentLimits, days, totalBytes: megabytes * 1024 * 1024 }
  return store.contents?.(shared) ?? createContentDirectory(directory, own)
}

import type { Store } from "../store/store.ts"

/**
 * Opens PostgreSQL if `database` is a URL, or else the SQLite file. The modules are loaded only when needed, because not
 * every engine has a database.
 */
export async function openDatabase({ database, file }: { database?: string; file: string }): Promise<Store> {
  if (database) {
    const { openPostgresStore } = await import("../store/postgres.ts")
    return openPostgresStore(database)
  }
  const { openSqliteStore } = await import("../store/sqlite.ts")
  return openSqliteStore(file)
}

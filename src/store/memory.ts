import "../util/require-node.ts"
import { createStore, type SqliteStoreOptions } from "./sqlite.ts"
import { openMemoryConnection } from "./sqlite-connection.ts"
import type { Store } from "./store.ts"

/**
 * Creates a {@link Store} in memory, for tests and embedding: an SQLite database without a file, which ends with
 * `close` or with the process.
 */
export function createMemoryStore({ isAlive }: Pick<SqliteStoreOptions, "isAlive"> = {}): Store {
  const connection = openMemoryConnection()
  return connection.run(() => createStore(connection, isAlive))
}

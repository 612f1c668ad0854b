import "../util/require-node.ts"
import { createStore, type SqliteStoreOptions } from "./sqlite.ts"
import { openMemoryConnection } from "./sqlite-connection.ts"
import type { Store } from "./store.ts"

/**
 * Creates a {@link Store} in memory, for tests and embedding: a SQLite database without a file, which is lost on
 * `close` or when the process ends.
 */
export function createMemoryStore({ isAlive }: Pick<SqliteStoreOptions, "isAlive"> = {}): Store {
  const connection = openMemoryConnection()
  return connection.run(() => createStore(connection, isAlive))
}

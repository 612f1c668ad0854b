import { createChangeWriter } from "./sqlite-changes.ts"
import { openConnection, type SqliteConnection } from "./sqlite-connection.ts"
import { createLeaseTable } from "./sqlite-leases.ts"
import { createReader } from "./sqlite-reader.ts"
import type { Store } from "./store.ts"

/** How the file is opened. */
export interface SqliteStoreOptions {
  /** How long a write waits for another process to let go of the database, in milliseconds. Default 5000. */
  busyTimeoutMs?: number
}

/**
 * The default {@link Store}: one SQLite file in WAL mode, shared by any number of processes. A missing file, also its
 * directory, is made, readable by its owner alone. Throws {@link StoreError}, and leaves the file as it is, when it is
 * no database, damaged, another program's, or written by a newer Tackle.
 *
 * What was committed survives the death of the process at any instant. A loss of power may take the commits after the
 * last durable one with it, the newest first, never the file.
 */
export async function openSqliteStore(path: string, options: SqliteStoreOptions = {}): Promise<Store> {
  const connection = openConnection(path, options.busyTimeoutMs ?? 5000)
  try {
    return connection.run(() => createStore(connection))
  } catch (error) {
    connection.close()
    throw error
  }
}

function createStore({ database, run, transact, durably, reclaim, close }: SqliteConnection): Store {
  const writer = createChangeWriter(database)
  const reader = createReader(database)
  const leases = createLeaseTable(database)
  return {
    async commit(changes, { durable = false } = {}) {
      const [first, ...more] = changes
      // A closed store refuses even that.
      if (first === undefined) return run(() => {})
      // One statement is a transaction by itself.
      const write = () =>
        more.length === 0 ? writer.apply(first) : transact(() => changes.forEach(writer.apply))
      run(() => (durable ? durably(write) : write()))
    },
    async session(id) {
      return run(() => reader.session(id))
    },
    async sessions(filter = {}) {
      return run(() => reader.sessions(filter))
    },
    async deleteSession(id) {
      return run(() => writer.deleteSession(id))
    },
    async messages(sessionID, page = {}) {
      return run(() => reader.messages(sessionID, page))
    },
    async todos(sessionID) {
      return run(() => reader.todos(sessionID))
    },
    async grants(scope) {
      return run(() => reader.grants(scope))
    },
    async lease(sessionID, holder, lives) {
      return run(() =>
        transact(() => {
          const present = leases.holder(sessionID)
          if (present && present.id !== holder.id && lives(present)) return present
          leases.put(sessionID, holder)
          return holder
        }),
      )
    },
    async release(sessionID, holder) {
      run(() => leases.remove(sessionID, holder))
    },
    async recover(lives, settle) {
      for (const { sessionID, holder } of run(leases.all)) {
        if (lives(holder)) continue
        run(() =>
          transact(() => {
            // Another process may have been here first, or work on the session by now.
            if (leases.holder(sessionID)?.id !== holder.id) return
            settle(reader.messages(sessionID)).forEach(writer.apply)
            leases.remove(sessionID, holder)
          }),
        )
      }
    },
    async holder(sessionID) {
      return run(() => leases.holder(sessionID))
    },
    async reclaim() {
      reclaim()
    },
    async close() {
      close()
    },
  }
}

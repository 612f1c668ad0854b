import "../util/require-node.ts"
import type { DatabaseSync } from "node:sqlite"
import type { MessageWithParts } from "../schema/message.ts"
import { searchByReading } from "./search.ts"
import { createChangeWriter } from "./sqlite-changes.ts"
import { openConnection, openReadOnlyConnection, type SqliteConnection } from "./sqlite-connection.ts"
import { createReader } from "./sqlite-reader.ts"
import { createSearchIndex } from "./sqlite-search.ts"
import { DamagedRowError, type LeaseHolder, numbered, type Store } from "./store.ts"

/** Options for {@link openSqliteStore}. */
export interface SqliteStoreOptions {
  /** Maximum time in milliseconds that a write waits for another process's lock. Default: 5000. */
  busyTimeoutMs?: number
}

/**
 * Opens the default {@link Store}: one SQLite file in WAL mode, which any number of processes can share. Creates a
 * missing file and its directory, readable by the owner only. Throws `StoreError` and leaves the file unchanged if it
 * is damaged, is not a Tackle database, or was written by a newer version of Tackle.
 *
 * Commits survive even if the process is killed at any moment. A power loss may undo the most recent commits but does
 * not damage the file.
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

/**
 * Opens a database whose file or directory cannot be written, without recovering the sessions of killed runs. Writes
 * throw. `isCurrent` is false if the latest changes cannot be read. Throws `StoreError` for a database that is missing
 * or of another version.
 */
export async function openReadOnlySqliteStore(path: string): Promise<{ store: Store; isCurrent: boolean }> {
  const { connection, isCurrent } = openReadOnlyConnection(path, 5000)
  try {
    const store = connection.run(() => createStore(connection))
    return { store: { ...store, search: searchByReading(store), async recover() {} }, isCurrent }
  } catch (error) {
    connection.close()
    throw error
  }
}

function createStore(connection: SqliteConnection): Store {
  const { database, run, change, transact, durably, reclaim, close } = connection
  const writer = createChangeWriter(database)
  const reader = createReader(database)
  const index = createSearchIndex(connection, database, reader)
  const leases = createLeaseTable(database)
  const watcher = createWatcher(database)

  /** Returns an empty list if a message is damaged. The next use of the session reports the damage. */
  function readableMessages(sessionID: string): MessageWithParts[] {
    try {
      return reader.messages(sessionID)
    } catch (error) {
      if (error instanceof DamagedRowError) return []
      throw error
    }
  }

  return {
    async commit(changes, { durable = false } = {}) {
      // This throws if the store is closed.
      if (changes.length === 0) return run(() => [])
      const write = () => transact(() => writer.apply(changes))
      return change(() => (durable ? durably(write) : write()))
    },
    async session(id) {
      return run(() => reader.session(id))
    },
    async sessions(filter = {}) {
      return run(() => reader.sessions(filter))
    },
    search: index.search,
    async deleteSession(id) {
      return change(() => writer.deleteSession(id))
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
    async sequence(sessionID) {
      return run(() => reader.sequence(sessionID))
    },
    async changes(sessionID, after) {
      return run(() => reader.changes(sessionID, after))
    },
    watch: watcher.watch,
    async updateInputs(sessionID, named, decide) {
      return change(() =>
        transact(() => {
          const decided = decide({
            pending: reader.pendingInputs(sessionID),
            named: named === undefined ? undefined : reader.input(sessionID, named),
            holder: leases.holder(sessionID),
          })
          let next = reader.sequence(sessionID)
          const inputs = decided.map((input) => numbered(input, ++next))
          const sequences = writer.apply(inputs.map((input) => ({ kind: "input", input })))
          return inputs.map((input, index) => ({ input, seq: sequences[index] ?? 0 }))
        }),
      )
    },
    async inputs(sessionID) {
      return run(() => reader.pendingInputs(sessionID))
    },
    async sessionsWithInputs() {
      return run(() => reader.sessionsWithInputs())
    },
    async lease(sessionID, holder, lives) {
      return change(() =>
        transact(() => {
          const present = leases.holder(sessionID)
          if (present && present.id !== holder.id && lives(present)) return present
          leases.put(sessionID, holder)
          return holder
        }),
      )
    },
    async release(sessionID, holder) {
      change(() => leases.remove(sessionID, holder))
    },
    async recover(lives, settle) {
      for (const { sessionID, holder } of run(leases.all)) {
        if (lives(holder)) continue
        change(() =>
          transact(() => {
            // Another process may have already recovered the session, or may be using it.
            if (leases.holder(sessionID)?.id !== holder.id) return
            writer.apply(settle(readableMessages(sessionID)))
            leases.remove(sessionID, holder)
          }),
        )
      }
    },
    async holder(sessionID) {
      return run(() => leases.holder(sessionID))
    },
    async reclaim() {
      change(index.compact)
      reclaim()
    },
    async close() {
      watcher.end()
      close()
    },
  }
}

/** Interval in milliseconds between checks for changes by other processes. */
const watchMs = 200

/**
 * Watches for commits by other connections. Each commit changes `data_version`, and reading this value takes about 2
 * µs.
 */
function createWatcher(database: DatabaseSync): { watch: Store["watch"]; end(): void } {
  const version = database.prepare("PRAGMA data_version")
  const listeners = new Set<() => void>()
  let timer: NodeJS.Timeout | undefined
  let last: unknown

  /** Returns the number of the last commit by another connection, or the last known one if it cannot be read now. */
  function read(): unknown {
    try {
      return version.get()?.data_version
    } catch {
      return last
    }
  }

  function check(): void {
    const now = read()
    if (now === last) return
    last = now
    for (const listener of [...listeners]) listener()
  }

  function end(): void {
    clearInterval(timer)
    timer = undefined
  }

  return {
    watch(listener) {
      // The wrapper is a new function for each watch, so one listener can watch twice.
      const entry = () => listener()
      listeners.add(entry)
      if (!timer) {
        last = read()
        timer = setInterval(check, watchMs).unref()
      }
      return () => {
        listeners.delete(entry)
        if (listeners.size === 0) end()
      }
    },
    end,
  }
}

/** The table of leases, with prepared statements. */
interface LeaseTable {
  holder(sessionID: string): LeaseHolder | undefined
  all(): { sessionID: string; holder: LeaseHolder }[]
  put(sessionID: string, holder: LeaseHolder): void
  /** Removes the lease of `holder`. Does nothing if another holder has the lease. */
  remove(sessionID: string, holder: LeaseHolder): void
}

function createLeaseTable(database: DatabaseSync): LeaseTable {
  const statements = {
    select: database.prepare("SELECT data FROM leases WHERE session_id = ?"),
    put: database.prepare(
      "INSERT INTO leases (session_id, data) VALUES (?, ?) ON CONFLICT (session_id) DO UPDATE SET data = excluded.data",
    ),
    all: database.prepare("SELECT session_id, data FROM leases"),
    remove: database.prepare("DELETE FROM leases WHERE session_id = ? AND data ->> 'id' = ?"),
  }
  return {
    holder(sessionID) {
      const row = statements.select.get(sessionID)
      return row && parseHolder(row.data)
    },
    all: () =>
      statements.all
        .all()
        .map((row) => ({ sessionID: String(row.session_id), holder: parseHolder(row.data) })),
    put(sessionID, holder) {
      statements.put.run(sessionID, JSON.stringify(holder))
    },
    remove(sessionID, { id }) {
      statements.remove.run(sessionID, id)
    },
  }
}

function parseHolder(data: unknown): LeaseHolder {
  return JSON.parse(String(data)) as LeaseHolder
}

import "../util/require-node.ts"
import type { DatabaseSync } from "node:sqlite"
import type { MessageWithParts } from "../schema/message.ts"
import type { Session } from "../schema/session.ts"
import { isProcessRunning } from "../util/process-table.ts"
import { createControlBell } from "./control-bell.ts"
import { searchByReading } from "./search.ts"
import { createChangeWriter } from "./sqlite-changes.ts"
import { openConnection, openReadOnlyConnection, type SqliteConnection } from "./sqlite-connection.ts"
import { createReader } from "./sqlite-reader.ts"
import { createRequestTable } from "./sqlite-requests.ts"
import { createSearchIndex } from "./sqlite-search.ts"
import { createSqliteTenants, type SqliteTenants } from "./sqlite-tenants.ts"
import { createSqliteWatch } from "./sqlite-watch.ts"
import {
  DamagedRowError,
  type Lease,
  type LeaseHolder,
  LeaseLostError,
  numbered,
  type Store,
} from "./store.ts"
import { TenantLimitError } from "./tenants.ts"

/** Options for {@link openSqliteStore}. */
export interface SqliteStoreOptions {
  /** Maximum time in milliseconds that an operation waits for another process's lock. Default: 5000. */
  busyTimeoutMs?: number
  /** Returns true if the holder of a lease is alive. Default: true while the holder's process runs. */
  isAlive?: (holder: LeaseHolder) => boolean
}

/**
 * Opens the default {@link Store}: one SQLite file in WAL mode, which any number of processes can share. Creates a
 * missing file and its directory, readable by the owner only. Throws `StoreError` and leaves the file unchanged if it
 * is damaged, is not a Tackle database, or was written by a newer version of Tackle.
 *
 * Commits survive if the process is killed at any moment. A power loss may undo the commits after the last durable
 * commit but does not damage the file.
 */
export async function openSqliteStore(path: string, options: SqliteStoreOptions = {}): Promise<Store> {
  const connection = openConnection(path, options.busyTimeoutMs ?? 5000)
  try {
    return connection.run(() => createStore(connection, options.isAlive))
  } catch (error) {
    connection.close()
    throw error
  }
}

/**
 * Opens a database whose file or directory cannot be written, without recovering the sessions of killed runs. Writes
 * throw. `isCurrent` is false if the latest changes may be missing. Throws `StoreError` if the file is missing, is not
 * a Tackle database, or has another version.
 */
export async function openReadOnlySqliteStore(path: string): Promise<{ store: Store; isCurrent: boolean }> {
  const { connection, isCurrent } = openReadOnlyConnection(path, 5000)
  try {
    const store = connection.run(() => createStore(connection))
    return { store: { ...store, search: searchByReading(store), recover: async () => [] }, isCurrent }
  } catch (error) {
    connection.close()
    throw error
  }
}

/** Creates a store for an open database. For `isAlive`, see {@link SqliteStoreOptions}. */
export function createStore(
  connection: SqliteConnection,
  isAlive: (holder: LeaseHolder) => boolean = isProcessRunning,
): Store {
  const { database, run, change, transact, durably, reclaim, close } = connection
  const writer = createChangeWriter(database)
  const reader = createReader(database)
  const index = createSearchIndex(connection, database, reader)
  const leases = createLeaseTable(database)
  const requests = createRequestTable(database, ({ asked: { sessionID }, holder, epoch }) => {
    const lease = leases.current(sessionID)
    return lease?.holder.id === holder && lease.epoch === epoch && isAlive(lease.holder)
  })
  const watcher = createSqliteWatch(database)
  const bell = createControlBell()

  let tenants: SqliteTenants | undefined
  /** Prepares the statements on first use, because most databases have no tenants. */
  function tenantTable(): SqliteTenants {
    tenants ??= createSqliteTenants(database)
    return tenants
  }

  /** Returns the number of a tenant's sessions that live engines hold, excluding the session `except`. */
  function runningOf(tenant: string, except?: string): number {
    const ids = tenantTable().leased(tenant)
    return ids.filter((id) => {
      const holder = id === except ? undefined : leases.holder(id)
      return holder !== undefined && isAlive(holder)
    }).length
  }

  /**
   * Returns the session's messages, or an empty list if one is damaged. The next use of the session reports the damage.
   */
  function readableMessages(sessionID: string): MessageWithParts[] {
    try {
      return reader.messages(sessionID)
    } catch (error) {
      if (error instanceof DamagedRowError) return []
      throw error
    }
  }

  return {
    async commit(changes, { durable = false, lease, releases = false, also } = {}) {
      // This throws if the store is closed.
      if (changes.length === 0 && !releases) return run(() => [])
      const write = () =>
        transact(() => {
          if (lease) leases.assertCurrent(lease)
          const sequences = writer.apply(changes)
          if (lease && releases) leases.remove(lease)
          return sequences
        })
      const sequences = change(() => (durable ? durably(write) : write()))
      if (lease && releases) {
        await also?.()
        bell.ring({ sessionID: lease.sessionID, what: "lease" })
      }
      return sequences
    },
    async session(id) {
      return run(() => reader.session(id))
    },
    async sessions(filter = {}) {
      return run(() => reader.sessions(filter))
    },
    async page(filter = {}) {
      return run(() => reader.page(filter))
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
    watchControl(listener) {
      const ends = [watcher.watch(() => listener()), bell.add(listener)]
      return () => {
        for (const end of ends) end()
      }
    },
    async updateInputs(sessionID, named, decide, { lease, also } = {}) {
      const stored = change(() =>
        transact(() => {
          if (lease) leases.assertCurrent(lease)
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
      if (stored.length > 0) await also?.()
      return stored
    },
    async inputs(sessionID) {
      return run(() => reader.pendingInputs(sessionID))
    },
    async sessionsWithInputs() {
      return run(() => reader.sessionsWithInputs())
    },
    async lease(sessionID, holder, limit) {
      return change(() =>
        transact(() => {
          if (limit && runningOf(limit.tenant, sessionID) >= limit.sessions)
            throw new TenantLimitError(limit.tenant, "sessions", limit.sessions)
          const present = leases.holder(sessionID)
          if (present && present.id !== holder.id && isAlive(present))
            return { isHeld: false, holder: present }
          return { isHeld: true, lease: leases.put(sessionID, holder) }
        }),
      )
    },
    async release(lease) {
      change(() => leases.remove(lease))
      bell.ring({ sessionID: lease.sessionID, what: "lease" })
    },
    async recover(settle) {
      const unfinished: Session[] = []
      for (const lease of run(leases.all)) {
        if (isAlive(lease.holder)) continue
        change(() =>
          transact(() => {
            // Another process may have already recovered the session, or may be using it.
            if (!leases.isCurrent(lease)) return
            writer.apply(settle(readableMessages(lease.sessionID)))
            const session = reader.session(lease.sessionID)
            if (session?.restoring) unfinished.push(session)
            else leases.remove(lease)
          }),
        )
      }
      if (run(requests.hasStale)) change(() => transact(requests.removeStale))
      return unfinished
    },
    async holder(sessionID) {
      const present = run(() => leases.holder(sessionID))
      return present && isAlive(present) ? present : undefined
    },
    async stop(sessionID) {
      const lease = change(() =>
        transact(() => {
          const present = leases.current(sessionID)
          if (!present || !isAlive(present.holder)) return undefined
          leases.stop(sessionID)
          return present
        }),
      )
      bell.ring({ sessionID, what: "lease" })
      return lease
    },
    async isStopping(lease) {
      return run(() => leases.isStopping(lease))
    },
    async openRequest(request, lease) {
      change(() =>
        transact(() => {
          leases.assertCurrent(lease)
          requests.open(request)
        }),
      )
      bell.ring({ sessionID: lease.sessionID, what: "request" })
    },
    async requests() {
      return run(requests.list)
    },
    async request(id) {
      return run(() => requests.get(id))
    },
    async answerRequest(id, answer) {
      const request = change(() => transact(() => requests.answer(id, answer)))
      if (request) bell.ring({ sessionID: request.asked.sessionID, what: "request" })
      return request
    },
    async addUsage(usage) {
      change(() => transact(() => tenantTable().addUsage(usage)))
    },
    async tenantUsage(tenant, day) {
      return run(() => ({ running: runningOf(tenant), ...tenantTable().usage(tenant, day) }))
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

/** The table of leases, with prepared statements. */
interface LeaseTable {
  current(sessionID: string): Lease | undefined
  holder(sessionID: string): LeaseHolder | undefined
  all(): Lease[]
  /** Replaces the session's lease. */
  put(sessionID: string, holder: LeaseHolder): Lease
  isCurrent(lease: Lease): boolean
  /** Throws {@link LeaseLostError} if the lease is no longer valid. */
  assertCurrent(lease: Lease): void
  /** Removes the lease. Does nothing if it is no longer valid. */
  remove(lease: Lease): void
  /** Records that the holder of the session's lease must stop. */
  stop(sessionID: string): void
  /** Returns true if the lease is still valid and its holder must stop. */
  isStopping(lease: Lease): boolean
}

function createLeaseTable(database: DatabaseSync): LeaseTable {
  const statements = {
    select: database.prepare("SELECT data FROM leases WHERE session_id = ?"),
    put: database.prepare(
      "INSERT INTO leases (session_id, data) VALUES (?, ?) ON CONFLICT (session_id) DO UPDATE SET data = excluded.data",
    ),
    all: database.prepare("SELECT session_id, data FROM leases"),
    remove: database.prepare(
      "DELETE FROM leases WHERE session_id = ? AND data ->> 'id' = ? AND coalesce(data ->> 'epoch', 0) = ?",
    ),
    stop: database.prepare(
      "UPDATE leases SET data = json_set(data, '$.stops', json('true')) WHERE session_id = ?",
    ),
    isStopping: database.prepare("SELECT data ->> 'stops' AS stops FROM leases WHERE session_id = ?"),
  }

  /** The greatest lease number that this store has issued. */
  let last = 0

  function current(sessionID: string): Lease | undefined {
    const row = statements.select.get(sessionID)
    return row && parseLease(sessionID, row.data)
  }

  function isCurrent({ sessionID, holder, epoch }: Lease): boolean {
    const present = current(sessionID)
    return present?.holder.id === holder.id && present.epoch === epoch
  }

  return {
    current,
    holder: (sessionID) => current(sessionID)?.holder,
    all: () => statements.all.all().map((row) => parseLease(String(row.session_id), row.data)),
    put(sessionID, holder) {
      // A released lease is no longer in the table, but a later lease of the same holder must have a different number.
      last = Math.max(current(sessionID)?.epoch ?? 0, last) + 1
      statements.put.run(sessionID, JSON.stringify({ ...holder, epoch: last }))
      return { sessionID, holder, epoch: last }
    },
    isCurrent,
    assertCurrent(lease) {
      if (!isCurrent(lease)) throw new LeaseLostError(lease.sessionID)
    },
    remove({ sessionID, holder, epoch }) {
      statements.remove.run(sessionID, holder.id, epoch)
    },
    stop(sessionID) {
      statements.stop.run(sessionID)
    },
    isStopping: (lease) => statements.isStopping.get(lease.sessionID)?.stops === 1 && isCurrent(lease),
  }
}

/** Parses a lease. Earlier versions of Tackle stored only the holder, without a number. */
function parseLease(sessionID: string, data: unknown): Lease {
  const {
    epoch = 0,
    stops: _,
    ...holder
  } = JSON.parse(String(data)) as LeaseHolder & { epoch?: number; stops?: true }
  return { sessionID, holder, epoch }
}

import "../util/require-node.ts"
import type { Input } from "../schema/input.ts"
import type { MessageWithParts } from "../schema/message.ts"
import type { Session } from "../schema/session.ts"
import { keepAlive } from "../util/abort.ts"
import { ChangedError, createPostgresWriter, noteMs } from "./postgres-changes.ts"
import { migrateSchema, openPostgresConnection, type PostgresConnection } from "./postgres-connection.ts"
import { createPostgresContents } from "./postgres-contents.ts"
import { createPostgresLeases } from "./postgres-leases.ts"
import { createPostgresReader } from "./postgres-reader.ts"
import { createPostgresRequests } from "./postgres-requests.ts"
import { createPostgresSearch } from "./postgres-search.ts"
import { createPostgresTenants } from "./postgres-tenants.ts"
import { createPostgresWatcher } from "./postgres-watch.ts"
import {
  type Change,
  type ControlChange,
  DamagedRowError,
  type Lease,
  LeaseLostError,
  numbered,
  type Store,
  StoreError,
} from "./store.ts"

/** Options for {@link openPostgresStore} and {@link migratePostgres}. */
export interface PostgresStoreOptions {
  /** Name of the schema that contains Tackle's tables. Default: `tackle`. */
  schema?: string
  /** Maximum number of connections, in addition to one for notifications. Default: 10. */
  connections?: number
  /** Maximum time in milliseconds that an operation waits for a server that does not answer. Default: 10,000. */
  retryMs?: number
  /**
   * Time in milliseconds after which a stopped process's lease expires. A running process renews its leases at
   * intervals of a third of this time. Default: 3000.
   */
  leaseMs?: number
}

/**
 * Opens a {@link Store} in PostgreSQL 15 or newer, which any number of machines can share. Needs the package `pg`. The
 * URL has the form `postgres://user:password@host:port/database`. Throws `StoreError` if the server cannot be used, or
 * if the tables do not match this version of Tackle. {@link migratePostgres} creates missing tables and updates old
 * ones.
 *
 * Every commit is on the server's disk when its promise resolves, unless the server has `synchronous_commit = off`. If
 * the connection is lost, an operation waits for the server and runs again. A commit whose response was lost is then
 * applied twice: its changes get new sequence numbers, but the stored objects are the same.
 */
export async function openPostgresStore(url: string, options: PostgresStoreOptions = {}): Promise<Store> {
  return createStore(await openPostgresConnection(connectionOptions(url, options)), options)
}

/**
 * Creates Tackle's tables, or migrates them to this version of Tackle. Concurrent calls wait for each other. Returns
 * the versions before and after. Throws `StoreError` and changes nothing if the tables are newer.
 */
export function migratePostgres(
  url: string,
  options: PostgresStoreOptions = {},
): Promise<{ before: number; after: number }> {
  return migrateSchema(connectionOptions(url, options))
}

function connectionOptions(
  url: string,
  { schema = "tackle", connections = 10, retryMs = 10_000 }: PostgresStoreOptions,
) {
  return { url, schema, connections, retryMs }
}

/** Maximum number of attempts to update inputs that other processes change at the same time. */
const maxAttempts = 100

function createStore(connection: PostgresConnection, { leaseMs = 3000 }: PostgresStoreOptions): Store {
  const { query, schema, channel } = connection
  const reader = createPostgresReader(connection)
  const writer = createPostgresWriter(connection, (lease) => leases.lost(lease))
  const leases = createPostgresLeases(connection, { ttlMs: leaseMs, ...writer })
  const watcher = createPostgresWatcher(connection)
  const tenants = createPostgresTenants(connection)
  const search = createPostgresSearch(connection, reader)
  const requests = createPostgresRequests(connection)

  function assertOpen(): void {
    if (connection.isClosed) throw new StoreError("The store is closed.")
  }

  /** Wraps a read of one session so that it sees all earlier commits to this session in this store. */
  function ofSession<A extends unknown[], T>(read: (sessionID: string, ...given: A) => Promise<T>) {
    return async (sessionID: string, ...given: A): Promise<T> => {
      assertOpen()
      await writer.settled(sessionID)
      return read(sessionID, ...given)
    }
  }

  /** Wraps a read so that it sees every earlier commit to this store. */
  function afterCommits<A extends unknown[], T>(read: (...given: A) => Promise<T>) {
    return async (...given: A): Promise<T> => {
      assertOpen()
      await writer.settled()
      return read(...given)
    }
  }

  /** Wraps a control change so that it also calls the listeners of this store. */
  function ringing<A extends unknown[], T>(
    write: (...given: A) => Promise<T>,
    changeOf: (result: T, ...given: A) => ControlChange | undefined,
  ) {
    return afterCommits(async (...given: A): Promise<T> => {
      const result = await write(...given)
      const change = changeOf(result, ...given)
      if (change) watcher.ring(change)
      return result
    })
  }

  async function close(): Promise<void> {
    leases.end()
    await writer.settled()
    await watcher.end()
    await connection.close()
  }

  /**
   * If a write failed with `error` only because it was sent again after its first response was lost, returns the
   * numbers of the changes that it has stored. Otherwise, throws `error`.
   */
  async function sequencesOfSent(
    changes: readonly Change[],
    { sessionID }: Lease,
    error: unknown,
  ): Promise<number[]> {
    if (!(error instanceof LeaseLostError) || changes.length === 0) throw error
    const after = (await reader.sequence(sessionID)) - changes.length
    const stored = new Map(
      (await reader.changes(sessionID, after)).map(({ seq, change }) => [JSON.stringify(change), seq]),
    )
    return changes.map((change) => {
      const seq = stored.get(JSON.stringify(change))
      if (seq === undefined) throw error
      return seq
    })
  }

  /**
   * Returns the session's messages, or an empty list if one is damaged. The next use of the session reports the damage.
   */
  async function readableMessages(sessionID: string): Promise<MessageWithParts[]> {
    try {
      return await reader.messages(sessionID)
    } catch (error) {
      if (error instanceof DamagedRowError) return []
      throw error
    }
  }

  return {
    noteMs,
    async commit(changes, { lease, releases = false, also } = {}) {
      assertOpen()
      if (!lease || !releases) return changes.length === 0 ? [] : writer.commit(changes, { lease })
      const sequences = await writer
        .commit(changes, { lease, also, ends: lease })
        .catch((error: unknown) => sequencesOfSent(changes, lease, error))
        // If the server cannot be reached, the lease expires, so that another worker continues the session.
        .finally(() => leases.ended(lease))
      watcher.ring({ sessionID: lease.sessionID, what: "lease" })
      return sequences
    },
    session: ofSession(reader.session),
    sessions: afterCommits(async (filter = {}) => reader.sessions(filter)),
    page: afterCommits(async (filter = {}) => reader.page(filter)),
    search: afterCommits(search),
    deleteSession: afterCommits((id) =>
      writer.alone(async () => {
        const [row] = await query(`SELECT ${schema}.delete_session($1, $2) AS deleted`, [id, channel])
        return row?.deleted === true
      }),
    ),
    messages: ofSession(reader.messages),
    todos: ofSession(reader.todos),
    grants: afterCommits(reader.grants),
    sequence: ofSession(reader.sequence),
    changes: ofSession(reader.changes),
    watch: watcher.watch,
    watchControl: watcher.watchControl,
    mail: watcher.mail,
    async updateInputs(sessionID, named, decide, { lease, also } = {}) {
      assertOpen()
      return writer.inTurn(sessionID, async () => {
        for (let attempt = 1; ; attempt += 1) {
          const { seq: expected, ...current } = await reader.currentInputs(sessionID, named)
          let next = expected
          const inputs: Input[] = decide(current).map((input) => numbered(input, ++next))
          if (inputs.length === 0) return []
          try {
            const changes = inputs.map((input) => ({ kind: "input", input }) as const)
            const sequences = await writer.commit(changes, { lease, expected, also })
            return inputs.map((input, index) => ({ input, seq: sequences[index] ?? 0 }))
          } catch (error) {
            if (!(error instanceof ChangedError) || attempt === maxAttempts) throw error
          }
        }
      })
    },
    inputs: ofSession(reader.pendingInputs),
    sessionsWithInputs: afterCommits(reader.sessionsWithInputs),
    lease: ofSession((sessionID, holder, limit) => leases.take(sessionID, holder, { limit })),
    reserve: leases.reserve,
    release: ringing(leases.release, (_, { sessionID }) => ({ sessionID, what: "lease" })),
    recover: afterCommits(async (settle) => {
      const unfinished: Session[] = []
      await leases.takeExpired(async (lease) => {
        const changes = settle(await readableMessages(lease.sessionID))
        if (changes.length > 0) await writer.commit(changes, { lease })
        const session = await reader.session(lease.sessionID)
        if (!session?.restoring) return "end"
        unfinished.push(session)
        return "expire"
      })
      await requests.removeStale()
      return unfinished
    }),
    holder: ofSession(leases.holder),
    addUsage: afterCommits(tenants.addUsage),
    tenantUsage: afterCommits(tenants.usage),
    contents: (limits) => createPostgresContents(connection, writer, limits),
    stop: ringing(leases.stop, (_, sessionID) => ({ sessionID, what: "lease" })),
    isStopping: afterCommits(leases.isStopping),
    openRequest: ringing(requests.openRequest, (_, { asked: { sessionID } }) => ({
      sessionID,
      what: "request",
    })),
    requests: afterCommits(requests.requests),
    request: afterCommits(requests.request),
    answerRequest: ringing(
      requests.answerRequest,
      (request) => request && { sessionID: request.asked.sessionID, what: "request" },
    ),
    abandoned: afterCommits(leases.abandoned),
    // PostgreSQL reuses the space of deleted rows without further action.
    reclaim: afterCommits(async () => {}),
    // Idle connections do not keep the process running.
    close: () => keepAlive(close()),
  }
}

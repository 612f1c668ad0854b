import { errorMessage, systemCode } from "../util/errors.ts"
import type { PostgresConnection, Query, Row } from "./postgres-connection.ts"
import {
  type Change,
  type Lease,
  type LeaseHolder,
  LeaseLostError,
  StoreError,
  StoreUnreachableError,
  sessionOf,
  type UpdateInputsOptions,
} from "./store.ts"

/** Writes changes in the order of the calls, one transaction at a time. */
export interface PostgresWriter {
  /** Commits changes. Waiting calls share a transaction. Throws the same errors as `Store.commit`. */
  commit(changes: readonly Change[], options: WriteOptions): Promise<number[]>
  /** Ends a lease and reports this to all processes, in a transaction with the waiting changes. */
  endLease(lease: Pick<Lease, "sessionID" | "epoch">): Promise<void>
  /** Leases a session, in a transaction with the waiting changes. See `Store.lease`. */
  takeLease(taking: Taking): Promise<TakenLease | undefined>
  /**
   * Leases sessions and stores their changes, in the transaction of `query`. Throws if the number of a session's latest
   * change is not `expected`. After an error, the caller must roll back the transaction.
   */
  takeLeasesIn(query: Query, takings: readonly TakingWithChanges[]): Promise<TakenLease[]>
  /** Stores a file's content and the time of its last use, in a transaction with the waiting changes. */
  putContent(content: StoredContent): Promise<void>
  /**
   * Stores the content together with the next write, or after a pause without writes, and does not report errors. If
   * many contents are waiting, stores them and this content like `putContent`.
   */
  noteContent(content: StoredContent): Promise<void>
  /**
   * Runs `work` after all earlier calls for the session. Later reads of the session wait for `work`, but later writes
   * do not.
   */
  inTurn<T>(sessionID: string, work: () => Promise<T>): Promise<T>
  /** Runs `work` after all earlier writes and before all later ones. */
  alone<T>(work: () => Promise<T>): Promise<T>
  /**
   * Resolves when all earlier writes to the session are done. Without `sessionID`, waits for the writes to all
   * sessions.
   */
  settled(sessionID?: string): Promise<void>
}

/** A lease to take. `ttl` is the interval after which the lease expires. */
interface Taking {
  sessionID: string
  holder: LeaseHolder
  ttl: string
}

/**
 * A lease to take together with changes to its session, if the session's latest change still has the number `expected`.
 */
export interface TakingWithChanges {
  takes: Taking
  changes: readonly Change[]
  expected: number
}

/** A file's content and its SHA-256. */
interface StoredContent {
  hash: string
  bytes: Uint8Array
}

/** The number of the new lease, or the holder of the current lease as JSON. */
interface TakenLease {
  taken: unknown
  present: unknown
}

interface WriteOptions {
  /** The lease of the run that makes the write. */
  lease?: Lease | undefined
  /** Expected number of the session's latest change. If it differs, the write rejects with {@link ChangedError}. */
  expected?: number
  /** See `Store.updateInputs`. */
  also?: UpdateInputsOptions["also"]
  /** A lease to end after the changes. */
  ends?: Pick<Lease, "sessionID" | "epoch">
  /** A lease to take after the changes. */
  takes?: Taking
  content?: StoredContent
}

/** The result of a write. */
interface Written {
  sequences: number[]
  lease: TakenLease | undefined
}

/** Thrown if the session has changed since it was read. */
export class ChangedError extends StoreError {}

/** A write that waits for its transaction. */
interface Waiting {
  rows: readonly EncodedChange[]
  options: WriteOptions
  resolve(written: Written): void
  reject(error: unknown): void
}

/** Writes that share a transaction. */
interface Group {
  writes: Waiting[]
  rowCount: number
}

/** A change as column values. The kind determines the meaning of `place`, `time` and `state`. */
interface EncodedChange {
  kind: Change["kind"]
  /** Session whose sequence number the change advances. Undefined for grants. */
  owner: string | undefined
  id: string
  place?: string
  worktree?: string
  time?: number
  state?: string
  data?: string
}

/** Number of changes above which no further write joins a transaction. Limits the size of a statement. */
const maxShared = 500

/**
 * See `Store.noteMs`. Longer than most calls need to prepare, so that the start of a call is stored together with the
 * record that it may have effects.
 */
export const noteMs = 20

/** Maximum size in bytes of the contents that wait for a write. Limits the memory and the size of a statement. */
const maxNotedBytes = 4 * 1024 * 1024

/** Creates a store's writer. Calls `onLost` if a write fails because its lease is no longer valid. */
export function createPostgresWriter(
  { query, transact, lasting, schema, channel }: PostgresConnection,
  onLost: (lease: Lease) => void,
): PostgresWriter {
  /** The writes that wait for the next transaction. */
  let group: Group | undefined
  /** Resolves when all calls so far have finished. Never rejects. */
  let tail: Promise<void> = Promise.resolve()
  /** Promises, keyed by session, that resolve when the writes so far are done. They never reject. */
  const tails = new Map<string, Promise<void>>()
  /** Contents that wait for the next write. */
  let noted: StoredContent[] = []
  let noting: NodeJS.Timeout | undefined
  const statement = `SELECT * FROM ${schema}.commit_shared($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)`

  /**
   * Commits several writes in one statement. If the statement fails, commits each write separately, so that only the
   * invalid writes fail.
   */
  async function commitShared(writes: readonly Waiting[]): Promise<void> {
    try {
      const isPlain = writes.every(({ options: { also } }) => also === undefined)
      const written = await (isPlain ? write(writes) : writeWithOthers(writes))
      for (const [index, each] of written.entries()) writes[index]?.resolve(each)
    } catch (error) {
      if (writes.length === 1 || StoreUnreachableError.isThrown(error))
        for (const { reject } of writes) reject(error)
      else for (const each of writes) await commitShared([each])
    }
  }

  async function write(
    writes: readonly Pick<Waiting, "rows" | "options">[],
    run: Query = query,
  ): Promise<Written[]> {
    const owners: { id: string; count: number; options: WriteOptions }[] = []
    const rows: (EncodedChange & { ownerIndex: number })[] = []
    for (const { rows: changes, options } of writes) {
      const indexes = new Map<string, number>()
      for (const change of changes) {
        let ownerIndex = change.owner === undefined ? 0 : indexes.get(change.owner)
        if (ownerIndex === undefined) {
          ownerIndex = owners.push({ id: change.owner ?? "", count: 0, options })
          indexes.set(change.owner ?? "", ownerIndex)
        }
        const owner = owners[ownerIndex - 1]
        if (owner) owner.count += 1
        rows.push({ ...change, ownerIndex })
      }
    }
    const takes = writes.flatMap(({ options }) => options.takes ?? [])
    const contents = writes.flatMap(({ options }) => options.content ?? [])
    const ends = writes.flatMap(({ options }) => options.ends ?? [])
    const epochs = owners.map(({ id, options: { lease } }) => (lease?.sessionID === id ? lease.epoch : null))
    const column = <T>(read: (row: EncodedChange) => T) => rows.map((row) => read(row) ?? null)
    let result: Row | undefined
    try {
      ;[result] = await run(statement, [
        owners.map(({ id }) => id),
        owners.map(({ count }) => count),
        epochs,
        owners.map(({ options }) => options.expected ?? null),
        rows.map(({ ownerIndex }) => ownerIndex),
        column(({ kind }) => kind),
        column(({ id }) => id),
        column(({ place }) => place),
        column(({ worktree }) => worktree),
        column(({ time }) => time),
        column(({ state }) => state),
        column(({ data }) => data),
        channel,
        ends.map(({ sessionID }) => sessionID),
        ends.map(({ epoch }) => epoch),
        takes.map(({ sessionID }) => sessionID),
        takes.map(({ holder }) => holder.id),
        takes.map(({ holder }) => JSON.stringify(holder)),
        takes[0]?.ttl ?? null,
        contents.map(({ hash }) => hash),
        contents.map(({ bytes }) => bytes),
      ])
    } catch (error) {
      throw refusal(error, writes)
    }
    const next: number[] = (result?.firsts ?? []).map(Number)
    const leases = takes.map((_, index) => ({ taken: result?.taken[index], present: result?.present[index] }))
    let index = 0
    return writes.map(({ rows: changes, options: { takes: own } }) => {
      const sequences = changes.map(() => {
        const ownerIndex = rows[index++]?.ownerIndex ?? 0
        if (ownerIndex === 0) return 0
        next[ownerIndex - 1] = (next[ownerIndex - 1] ?? 0) + 1
        return next[ownerIndex - 1] ?? 0
      })
      return { sequences, lease: own && leases.shift() }
    })
  }

  /**
   * Writes changes in one transaction with the statements of `also`. The transaction locks the sessions, so the server
   * ends the transaction if this process sends no statement for two seconds.
   */
  function writeWithOthers(writes: readonly Waiting[]) {
    return lasting(() =>
      transact(async (run) => {
        await run("SET LOCAL idle_in_transaction_session_timeout = 2000")
        const written = await write(writes, run)
        for (const { options } of writes) await options.also?.(run)
        return written
      }),
    )
  }

  /** Converts the errors that `commit_changes` raises. */
  function refusal(error: unknown, writes: readonly Pick<Waiting, "options">[]): unknown {
    const code = error instanceof StoreError ? systemCode(error.cause) : undefined
    if (code === "TK002")
      return new ChangedError("Another process changed the session at the same time. Try again.")
    const [{ options: { lease } = {} } = {}, ...others] = writes
    if (code !== "TK001" || !lease || others.length > 0) return error
    onLost(lease)
    return new LeaseLostError(lease.sessionID)
  }

  function enqueue<T>(work: () => Promise<T>): Promise<T> {
    const done = tail.then(work)
    tail = done.then(
      () => {},
      () => {},
    )
    return done
  }

  /**
   * Adds a write to the next transaction. Later reads of the sessions that the write changes wait for this transaction.
   */
  function join(rows: readonly EncodedChange[], options: WriteOptions): Promise<Written> {
    flushNoted()
    return add(rows, options)
  }

  /** Adds the noted contents to the next transaction, before the writes that follow. */
  function flushNoted(): void {
    clearTimeout(noting)
    const contents = noted
    noted = []
    // If the content is not stored, a later undo reports that it is missing.
    for (const content of contents) add([], { content }).catch(() => {})
  }

  function add(rows: readonly EncodedChange[], options: WriteOptions): Promise<Written> {
    if (!group || group.rowCount > maxShared) {
      const own: Group = { writes: [], rowCount: 0 }
      group = own
      void enqueue(async () => {
        if (group === own) group = undefined
        await commitShared(own.writes)
      })
    }
    const { promise, resolve, reject } = Promise.withResolvers<Written>()
    group.writes.push({ rows, options, resolve, reject })
    group.rowCount += rows.length
    const leased = [options.ends, options.takes].flatMap((each) => each?.sessionID ?? [])
    for (const sessionID of new Set([...rows.flatMap(({ owner }) => owner ?? []), ...leased]))
      follow(sessionID, promise)
    return promise
  }

  /** Makes later reads of the session wait for `work`. */
  function follow(sessionID: string, work: Promise<unknown>): void {
    const done: Promise<void> = Promise.allSettled([tails.get(sessionID), work]).then(() => {
      if (tails.get(sessionID) === done) tails.delete(sessionID)
    })
    tails.set(sessionID, done)
  }

  return {
    // Encodes before the first wait, because the caller may change the objects afterwards.
    commit: async (changes, options) => (await join(encodeAll(changes), options)).sequences,
    async endLease(ends) {
      await join([], { ends })
    },
    async takeLeasesIn(run, takings) {
      const writes = takings.map(({ takes, changes, expected }) => ({
        rows: encodeAll(changes),
        options: { takes, expected },
      }))
      const written = await write(writes, run)
      return written.flatMap(({ lease }) => lease ?? [])
    },
    async putContent(content) {
      await join([], { content })
    },
    async noteContent(content) {
      const waiting = noted.reduce((total, { bytes }) => total + bytes.length, 0)
      if (waiting + content.bytes.length > maxNotedBytes) {
        await join([], { content })
        return
      }
      noted.push(content)
      clearTimeout(noting)
      noting = setTimeout(flushNoted, noteMs).unref()
    },
    takeLease: async (takes) => (await join([], { takes })).lease,
    alone(work) {
      // Later commits must wait until this work has finished.
      group = undefined
      return enqueue(work)
    },
    inTurn(sessionID, work) {
      const done = (tails.get(sessionID) ?? Promise.resolve()).then(work)
      follow(sessionID, done)
      return done
    },
    async settled(sessionID) {
      if (sessionID === undefined) flushNoted()
      await (sessionID === undefined ? tail : tails.get(sessionID))
    },
  }
}

function encodeAll(changes: readonly Change[]): EncodedChange[] {
  try {
    return changes.map((change) => ({ ...encode(change), kind: change.kind, owner: sessionOf(change) }))
  } catch (error) {
    throw new StoreError(`The store rejected a change: ${errorMessage(error)}`, error)
  }
}

function encode(change: Change): Omit<EncodedChange, "kind" | "owner"> {
  switch (change.kind) {
    case "session": {
      const { id, parentID, worktree, time } = change.session
      return { id, place: parentID, worktree, time: time.updated, data: JSON.stringify(change.session) }
    }
    case "message":
      return { id: change.message.id, data: JSON.stringify(change.message) }
    case "part":
      return { id: change.part.id, place: change.part.messageID, data: JSON.stringify(change.part) }
    case "part.remove":
      return { id: change.partID, place: change.messageID }
    case "todos":
      return { id: "", data: JSON.stringify(change.todos) }
    case "input": {
      const { id, state, position } = change.input
      return { id, state, time: position, data: JSON.stringify(change.input) }
    }
    case "grant": {
      const { id, scope, sessionID, worktree, time } = change.grant
      const place = scope === "session" ? sessionID : undefined
      return { id, place, worktree, time: time.created, data: JSON.stringify(change.grant) }
    }
    case "grant.remove":
      return { id: change.grantID }
  }
}

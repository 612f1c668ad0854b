import { errorMessage, systemCode } from "../util/errors.ts"
import type { PostgresConnection, Query } from "./postgres-connection.ts"
import {
  type Change,
  type Lease,
  LeaseLostError,
  StoreError,
  sessionOf,
  type UpdateInputsOptions,
} from "./store.ts"

/** Writes changes in the order of the calls, one statement at a time. */
export interface PostgresWriter {
  /** Commits changes. Waiting calls share a transaction. Throws like `Store.commit`. */
  commit(changes: readonly Change[], options: WriteOptions): Promise<number[]>
  /**
   * Runs `work` while no other write runs. `work` writes with its own `commit` function, which does not wait for other
   * calls.
   */
  alone<T>(work: (commit: PostgresWriter["commit"]) => Promise<T>): Promise<T>
  /** Resolves when all earlier calls have finished. */
  settled(): Promise<void>
}

interface WriteOptions {
  /** The lease of the run that makes the write. */
  lease?: Lease | undefined
  /** If set, rejects with {@link ChangedError} unless the last change of the session still has this number. */
  expected?: number
  /** See `Store.updateInputs`. Only for {@link PostgresWriter.alone}. */
  also?: UpdateInputsOptions["also"]
}

/** Thrown if the session has changed since it was read. */
export class ChangedError extends StoreError {}

/** A write that waits for its transaction. */
interface Waiting {
  rows: readonly EncodedChange[]
  options: WriteOptions
  resolve(sequences: number[]): void
  reject(error: unknown): void
}

/** Writes that share a transaction. */
interface Group {
  writes: Waiting[]
  rowCount: number
}

/** A change as values of columns. The kind determines the meaning of `place`, `time` and `state`. */
interface EncodedChange {
  kind: Change["kind"]
  /** Session whose last number the change advances. Undefined for grants. */
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

/** Creates the writer of a store. Calls `onLost` if a write fails because its lease has ended. */
export function createPostgresWriter(
  { query, transact, lasting, schema, channel }: PostgresConnection,
  onLost: (lease: Lease) => void,
): PostgresWriter {
  /** The writes that wait for the next transaction. */
  let group: Group | undefined
  /** Resolves when all calls so far have finished. Never rejects. */
  let tail: Promise<void> = Promise.resolve()
  const statement = `SELECT ${schema}.commit_changes($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) AS firsts`

  /**
   * Commits several writes in one statement. If the statement fails, commits each write separately, so that only the
   * invalid writes fail.
   */
  async function commitShared(writes: readonly Waiting[]): Promise<void> {
    try {
      const sequences = await write(writes)
      for (const [index, { resolve }] of writes.entries()) resolve(sequences[index] ?? [])
    } catch (error) {
      const [only, ...others] = writes
      if (others.length === 0) only?.reject(error)
      else for (const each of writes) await commitShared([each])
    }
  }

  async function write(
    writes: readonly Pick<Waiting, "rows" | "options">[],
    run: Query = query,
  ): Promise<number[][]> {
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
    const epochs = owners.map(({ id, options: { lease } }) => (lease?.sessionID === id ? lease.epoch : null))
    const column = <T>(read: (row: EncodedChange) => T) => rows.map((row) => read(row) ?? null)
    let firsts: unknown
    try {
      const [result] = await run(statement, [
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
      ])
      firsts = result?.firsts
    } catch (error) {
      throw refusal(error, writes)
    }
    const next = (Array.isArray(firsts) ? firsts : []).map(Number)
    let index = 0
    return writes.map(({ rows: changes }) =>
      changes.map(() => {
        const ownerIndex = rows[index++]?.ownerIndex ?? 0
        if (ownerIndex === 0) return 0
        next[ownerIndex - 1] = (next[ownerIndex - 1] ?? 0) + 1
        return next[ownerIndex - 1] ?? 0
      }),
    )
  }

  /**
   * Writes changes in one transaction with the statements of `also`. If this process stops in between, the server ends
   * the transaction, because the transaction locks the session.
   */
  function writeWith(written: Pick<Waiting, "rows" | "options">, also: NonNullable<WriteOptions["also"]>) {
    return lasting(() =>
      transact(async (run) => {
        await run("SET LOCAL idle_in_transaction_session_timeout = 2000")
        const sequences = await write([written], run)
        await also(run)
        return sequences
      }),
    )
  }

  /** Converts the errors that `commit_changes` raises. */
  function refusal(error: unknown, writes: readonly Pick<Waiting, "options">[]): unknown {
    const code = error instanceof StoreError ? systemCode(error.cause) : undefined
    if (code === "TK002") return new ChangedError("The session has changed.")
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

  return {
    commit(changes, options) {
      // Encoded before the first wait, because the caller may change the objects afterwards.
      const rows = encodeAll(changes)
      if (!group || group.rowCount > maxShared) {
        const own: Group = { writes: [], rowCount: 0 }
        group = own
        void enqueue(() => {
          if (group === own) group = undefined
          return commitShared(own.writes)
        })
      }
      const { promise, resolve, reject } = Promise.withResolvers<number[]>()
      group.writes.push({ rows, options, resolve, reject })
      group.rowCount += rows.length
      return promise
    },
    alone(work) {
      // Later commits must wait until this work has ended.
      group = undefined
      return enqueue(() =>
        work(async (changes, options) => {
          const written = { rows: encodeAll(changes), options }
          const [sequences = []] = await (options.also ? writeWith(written, options.also) : write([written]))
          return sequences
        }),
      )
    },
    settled: () => tail,
  }
}

function encodeAll(changes: readonly Change[]): EncodedChange[] {
  try {
    return changes.map((change) => ({ ...encode(change), kind: change.kind, owner: sessionOf(change) }))
  } catch (error) {
    throw new StoreError(`The store refused a change: ${errorMessage(error)}`, error)
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

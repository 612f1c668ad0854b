import { createHash, randomUUID } from "node:crypto"
import type { Db, PgBoss } from "pg-boss"
import {
  isTransient,
  loadLossTolerantClient,
  postgresError,
  whileLost,
} from "../store/postgres-connection.ts"
import { StoreError, type TransactionQuery } from "../store/store.ts"
import { within } from "../util/abort.ts"
import { systemCode } from "../util/errors.ts"
import type { Again, Dispatcher, JobReason, NewJob, WorkOptions } from "./dispatcher.ts"

/** Options for {@link openPgBossDispatcher}. */
interface PgBossOptions {
  /** Name of the schema that contains pg-boss's tables. A missing schema is created. Default: `tackle_jobs`. */
  schema?: string
  /** Maximum number of connections, in addition to one for notifications. Default: 3. */
  connections?: number
  /**
   * Interval in milliseconds at which a worker looks for jobs that cause no notification, such as jobs that were put
   * back. Default: 1000.
   */
  pollMs?: number
  /** Whether this process also removes old jobs. Default: false. */
  maintains?: boolean
  /** Receives errors from handlers, and database errors that no call reports. */
  onProblem(message: string, error: unknown): void
}

/** The content of a job in pg-boss. */
interface JobData {
  key: string
  reason: JobReason
  since?: number
}

const queue = "sessions"

/**
 * Time in seconds without a heartbeat after which a worker's job goes to another worker. pg-boss requires at least 10.
 * A session's lease expires earlier, so another worker takes over the session before this time.
 */
const heartbeatSeconds = 30

/** Heartbeat interval in milliseconds. */
const beatMs = 1_000

/** Time in milliseconds without a heartbeat after which a worker's jobs are replaced. */
const silentMs = 4_000

/** Maximum time in milliseconds to wait for a server that does not answer. */
const retryMs = 10_000

/**
 * Opens a dispatcher in PostgreSQL, with the package `pg-boss`. Throws `StoreError` if the package is missing or the
 * database cannot be used.
 */
export async function openPgBossDispatcher(url: string, options: PgBossOptions): Promise<Dispatcher> {
  const { schema = "tackle_jobs", onProblem, maintains = false } = options
  const boss = await createBoss(url, { ...options, schema })
  boss.on("error", (error) => {
    // pg-boss reopens lost connections.
    if (!isTransient(error)) onProblem("the job queue reported an error", error)
  })
  try {
    await boss.start()
    await boss.createQueue(queue, {
      policy: "key_strict_fifo",
      heartbeatSeconds,
      // The session's lease shows whether its worker is alive.
      expireInSeconds: 24 * 3600,
      retryLimit: 1_000_000,
      retentionSeconds: 365 * 24 * 3600,
      deleteAfterSeconds: 3600,
    })
  } catch (error) {
    await boss.stop({ graceful: false }).catch(() => {})
    throw postgresError(error, { url, schema })
  }

  const lasting = <T>(work: () => Promise<T>) => whileLost(work, { url, schema, retryMs })

  /** Stores a job in a transaction. */
  async function add(
    { key, id, reason, replaces = false }: NewJob,
    db: Db,
    { afterMs = 0, since }: Partial<Again> = {},
  ): Promise<void> {
    const data: JobData = { key, reason, since }
    // pg-boss expects whole seconds on the server's clock.
    const startAfter = Math.ceil(afterMs / 1000)
    const stored = await boss.send(queue, data, { id: idOf(key, id), singletonKey: key, startAfter, db })
    if (stored === null) return
    if (replaces) await cancel(key, db, stored)
    if (startAfter === 0) await db.executeSql("SELECT pg_notify($1, '')", [channelOf(schema)])
  }

  /** Forgets the jobs with a key, except one. */
  async function cancel(key: string, db: Db, except?: string): Promise<void> {
    const jobs = await boss.findJobs(queue, { key, db })
    const open = jobs.filter(({ id, state }) => id !== except && openStates.includes(state))
    const ids = open.map(({ id }) => id)
    if (ids.length > 0) await boss.cancel(queue, ids, { db })
  }

  function enqueue(job: NewJob, again?: Again): Promise<void> {
    return lasting(async () => {
      const transaction = await boss.getDb().beginTransaction?.()
      if (!transaction) throw new Error("This version of pg-boss does not support transactions.")
      try {
        await add(job, transaction.db, again)
        await transaction.commit()
      } catch (error) {
        await transaction.rollback()
        throw error
      }
    })
  }

  const worker = createWorker({
    boss,
    lasting,
    schema,
    pollMs: options.pollMs ?? 1000,
    replace: (job) => enqueue(job),
    onProblem,
    putBack: (key, again) => enqueue({ key, id: randomUUID(), reason: again.reason }, again),
  })

  async function close(graceMs: number): Promise<void> {
    await worker.end(graceMs)
    await boss.stop({ graceful: false, close: true })
  }

  let closed: Promise<void> | undefined
  return {
    enqueue: (job, transaction) => (transaction ? add(job, dbOf(transaction)) : enqueue(job)),
    work: worker.start,
    cancel: (key) => lasting(() => cancel(key, boss.getDb())),
    stats: () =>
      lasting(async () => {
        const { rows } = await boss.getDb().executeSql(
          `SELECT count(*) FILTER (WHERE state < 'active')::int AS waiting,
               count(*) FILTER (WHERE state = 'active')::int AS active FROM ${schema}.job WHERE name = $1`,
          [queue],
        )
        return { waiting: Number(rows[0]?.waiting), active: Number(rows[0]?.active) }
      }),
    close(graceMs = 0) {
      closed ??= close(graceMs)
      return closed
    },
  }

  async function createBoss(
    connectionString: string,
    given: Pick<PgBossOptions, "connections"> & { schema: string },
  ): Promise<PgBoss> {
    const { PgBoss: Boss } = await loadPackage()
    // pg-boss passes its options to the pool.
    const pool = { Client: await loadLossTolerantClient() }
    return new Boss({
      ...pool,
      connectionString,
      schema: given.schema,
      application_name: "tackle-jobs",
      max: given.connections ?? 3,
      supervise: maintains,
      schedule: false,
      monitorVacuum: false,
      reindex: false,
    })
  }
}

/** States of jobs that have not ended. */
const openStates = ["created", "retry", "active"]

/** Ends a transaction whose process is suspended, because the transaction locks sessions. */
const lockTimeout = "SET LOCAL idle_in_transaction_session_timeout = 2000"

const dbOf = (query: TransactionQuery): Db => ({
  executeSql: async (text, values) => ({ rows: await query(text, values) }),
})

const queryOf =
  (db: Db): TransactionQuery =>
  async (text, values) =>
    (await db.executeSql(text, values as unknown[])).rows

const channelOf = (schema: string) => `${schema}_new`

/** Creates a worker that takes and ends jobs in batches, so that many short jobs need few transactions. */
function createWorker({
  boss,
  lasting,
  schema,
  pollMs,
  onProblem,
  putBack,
  replace,
}: {
  boss: PgBoss
  lasting<T>(work: () => Promise<T>): Promise<T>
  schema: string
  pollMs: number
  onProblem: PgBossOptions["onProblem"]
  putBack(key: string, again: Again): Promise<void>
  replace(job: NewJob): Promise<void>
}) {
  const active = new Map<string, { controller: AbortController; done: Promise<void> }>()
  /** Jobs that a handler's transaction marks as ended. */
  const ending = new Set<string>()
  let beating: Promise<unknown> | undefined
  /** Handled jobs that the next statement marks as ended in the database. */
  let handled: { ids: string[]; done: Promise<void> } | undefined
  let lastEnd = Promise.resolve()
  let options: WorkOptions | undefined
  let isStopped = false
  /** Whether the queue may contain jobs that were not fetched. */
  let isDue = false
  let fetching: Promise<void> | undefined
  const timers: NodeJS.Timeout[] = []
  let listener: { close(): Promise<void> } | undefined

  function wake(): void {
    isDue = true
    fetching ??= fetchAll().finally(() => {
      fetching = undefined
    })
  }

  async function fetchAll(): Promise<void> {
    while (isDue && options && !isStopped && active.size < options.concurrency) {
      isDue = false
      const free = options.concurrency - active.size
      try {
        const jobs = await fetchJobs(free, options)
        for (const { id, data } of jobs) {
          const controller = new AbortController()
          active.set(id, { controller, done: run(id, data, options, controller.signal) })
        }
        if (jobs.length === free) isDue = true
      } catch (error) {
        // The next poll tries again.
        if (!isTransient(error)) onProblem("jobs could not be fetched", error)
        return
      }
    }
  }

  async function fetchJobs(
    batchSize: number,
    { reserve }: WorkOptions,
  ): Promise<{ id: string; data: JobData }[]> {
    if (reserve) {
      const transaction = await boss.getDb().beginTransaction?.()
      if (!transaction) throw new Error("This version of pg-boss does not support transactions.")
      const { db, commit, rollback } = transaction
      try {
        await db.executeSql(lockTimeout)
        const jobs = await boss.fetch<JobData>(queue, { batchSize, db })
        const onCommitted =
          jobs.length > 0
            ? await reserve(
                jobs.map(({ data }) => data),
                queryOf(db),
              )
            : () => {}
        await commit()
        onCommitted()
        return jobs
      } catch (error) {
        await rollback()
        // TK002: the session has changed since it was read. A store error: another process has leased it.
        const isExpected = StoreError.isThrown(error) || isTransient(error) || systemCode(error) === "TK002"
        if (!isExpected) onProblem("sessions could not be leased together with their jobs", error)
      }
    }
    return boss.fetch<JobData>(queue, { batchSize })
  }

  async function run(
    id: string,
    { key, reason, since }: JobData,
    { handle }: WorkOptions,
    signal: AbortSignal,
  ): Promise<void> {
    let again: Again | undefined
    try {
      const endIn = async (query?: TransactionQuery) => {
        if (!query) return
        // Excludes the job from heartbeats, because this transaction and a heartbeat could wait for each other's jobs.
        ending.add(id)
        await beating?.catch(() => {})
        await boss.complete(queue, [id], null, { db: dbOf(query) })
      }
      again = await handle({ key, reason, since, signal, endIn })
    } catch (error) {
      onProblem(`the job for session ${key} failed`, error)
    }
    try {
      // Puts the job back first, so that it is not lost if the process ends between the two statements.
      if (again) await putBack(key, again)
      await end(id)
    } catch (error) {
      // The job stays active without heartbeats, so a worker replaces it.
      onProblem(`the job for session ${key} could not be put back`, error)
    }
    active.delete(id)
    ending.delete(id)
    wake()
  }

  /** Marks a handled job as ended. Calls made while a statement is running share the next statement. */
  function end(id: string): Promise<void> {
    if (!handled) {
      const ids: string[] = []
      const done = lastEnd.then(async () => {
        handled = undefined
        await endAll(ids)
      })
      handled = { ids, done }
      lastEnd = done
    }
    handled.ids.push(id)
    return handled.done
  }

  async function endAll(ids: string[]): Promise<void> {
    // If this fails, other workers receive the jobs after the heartbeat times out.
    await lasting(() => boss.complete(queue, ids)).catch((error: unknown) =>
      onProblem("jobs could not be marked as ended", error),
    )
  }

  async function beat(): Promise<void> {
    const ids = [...active.keys()].filter((id) => !ending.has(id))
    try {
      if (ids.length > 0 && !beating) {
        beating = boss.touch(queue, ids).finally(() => {
          beating = undefined
        })
        await beating
      }
      await replaceLost()
    } catch (error) {
      if (!isTransient(error)) onProblem("the state of active jobs could not be updated", error)
    }
  }

  /** Replaces jobs whose workers ended before they leased the session, because no other process notices these jobs. */
  async function replaceLost(): Promise<void> {
    const { rows } = await boss.getDb().executeSql(
      `SELECT id, singleton_key AS key, started_on::text AS started FROM ${schema}.job
       WHERE name = $1 AND state = 'active' AND heartbeat_on < now() - $2::interval`,
      [queue, `${silentMs} milliseconds`],
    )
    for (const { id, key, started } of rows)
      if (!active.has(id))
        await replace({ key, id: `lost ${id} ${started}`, reason: "continue", replaces: true })
  }

  return {
    async start(given: WorkOptions): Promise<void> {
      options = given
      const database = boss.getDb()
      listener = await database.listen?.(channelOf(schema), wake, wake)
      timers.push(setInterval(wake, pollMs), setInterval(beat, beatMs))
      wake()
    },
    async end(graceMs: number): Promise<void> {
      isStopped = true
      await fetching
      const done = Promise.all([...active.values()].map((each) => each.done))
      await within(done, graceMs)
      for (const { controller } of active.values()) controller.abort()
      await done
      for (const timer of timers) clearInterval(timer)
      await listener?.close()
    },
  }
}

/** Returns a job's UUID. pg-boss stores each UUID only once. */
function idOf(key: string, id: string): string {
  const hex = createHash("sha256").update(`${key}\0${id}`).digest("hex")
  // Version 8 is reserved for custom formats such as this one.
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}

async function loadPackage(): Promise<typeof import("pg-boss")> {
  try {
    return await import("pg-boss")
  } catch (error) {
    if (systemCode(error) !== "ERR_MODULE_NOT_FOUND") throw error
    throw new StoreError(
      "Workers need the package pg-boss, which is not installed. Install it next to Tackle: npm install pg-boss",
      error,
    )
  }
}

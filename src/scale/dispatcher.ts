import type { TransactionQuery } from "../store/store.ts"

/**
 * The reason why a session needs a worker. `input`: the session has input to deliver. `continue`: the process that ran
 * the session ended before the run was complete.
 */
export type JobReason = "input" | "continue"

/** A job to enqueue. */
export interface NewJob {
  /** Id of the session. Jobs with the same key run one at a time, in the order of the `enqueue` calls. */
  key: string
  /**
   * Id of the job. Enqueuing the same key and id again has no effect while the first job waits or runs, and for at
   * least 10 minutes afterwards.
   */
  id: string
  reason: JobReason
  /**
   * Whether to forget the other jobs with the same key, including one that a worker has taken. The handler of a taken
   * job keeps running, so set this only if the worker has ended or has lost the session's lease. Has no effect if the
   * id is already known. Default: false.
   */
  replaces?: boolean
}

/** A job that a worker has taken. */
export interface Job {
  key: string
  reason: JobReason
  /** See {@link Again.since}. Absent for a job that was enqueued. */
  since?: number
  /** Aborts when the dispatcher closes and the grace time has passed. The handler must then return soon. */
  signal: AbortSignal
  /**
   * Ends the job in the transaction of `query`, before its handler returns. Absent if the dispatcher uses no database.
   */
  endIn?(query?: TransactionQuery): Promise<void>
}

/** Result of a handler that puts its job back, behind the other jobs with the same key. */
export interface Again {
  reason: JobReason
  /** Time in milliseconds during which no worker takes the job. */
  afterMs: number
  /**
   * Time at which the job began to wait for its machine, in milliseconds since the epoch. Passed to the next handler.
   */
  since?: number
}

/** Options for {@link Dispatcher.work}. */
export interface WorkOptions {
  /** Maximum number of jobs that run at once. */
  concurrency: number
  /**
   * Called in the transaction that takes jobs, with these jobs. If it rejects, the dispatcher takes jobs in another
   * transaction and does not call `reserve` for them. The returned function is called after the transaction has
   * committed. A dispatcher without a database does not call `reserve`.
   */
  reserve?(jobs: readonly Pick<Job, "key" | "reason">[], query: TransactionQuery): Promise<() => void>
  /**
   * Runs a job. Resolves with {@link Again} to put the job back. If the handler rejects, the error is reported and the
   * job is not repeated.
   */
  handle(job: Job): Promise<Again | undefined>
}

/** Number of jobs in the queue, across all processes. */
export interface DispatchStats {
  /** Jobs that no worker has taken. */
  waiting: number
  active: number
}

/**
 * Passes jobs to workers. A job only says that a session needs a worker. The worker reads the store to find out what to
 * do. A job may therefore arrive late or twice, but must not be lost. Every implementation passes
 * `test/suites/dispatcher.ts`.
 */
export interface Dispatcher {
  /**
   * Adds a job. With `transaction`, a dispatcher that uses the same database adds the job only if the transaction
   * commits. Other dispatchers ignore `transaction`.
   */
  enqueue(job: NewJob, transaction?: TransactionQuery): Promise<void>
  /** Starts to take jobs. Can be called only once. */
  work(options: WorkOptions): Promise<void>
  /** Forgets all jobs with a key, including a job that a worker has taken. The handler of a taken job keeps running. */
  cancel(key: string): Promise<void>
  stats(): Promise<DispatchStats>
  /**
   * Stops taking jobs and waits up to `graceMs` (default 0) for this process's jobs. Then aborts their signals and
   * waits until the jobs have finished. Idempotent.
   */
  close(graceMs?: number): Promise<void>
}

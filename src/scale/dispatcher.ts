import type { TransactionQuery } from "../store/store.ts"

/**
 * Why a session needs a worker: it has admitted input (`input`), or the process that ran it ended before its run
 * (`continue`).
 */
export type JobReason = "input" | "continue"

/** A job to enqueue. */
export interface NewJob {
  /** The session. Jobs with the same key are worked on in the order of `enqueue`, one at a time. */
  key: string
  /** Enqueuing a key and an id again has no effect, also while the first job is worked on, and at least 10 minutes later. */
  id: string
  reason: JobReason
  /**
   * True to forget the other jobs of the key, also a job that a worker has taken. Its handler continues, so set this only
   * if that worker is gone or has lost the lease of the session. Has no effect if the id is known. Default: false.
   */
  replaces?: boolean
}

/** A job that a worker has taken. */
export interface Job {
  key: string
  reason: JobReason
  /** Fires when the dispatcher closes and the time for its jobs is over. The handler must then return soon. */
  signal: AbortSignal
}

/** Puts a job back behind the other jobs of its key. */
export interface Again {
  reason: JobReason
  /** Time in milliseconds before which no worker takes the job. */
  afterMs: number
}

/** Options of {@link Dispatcher.work}. */
export interface WorkOptions {
  /** Maximum number of jobs at once. */
  concurrency: number
  /** Works on a job. Resolves with {@link Again} to put it back. A rejected job is reported and not repeated. */
  handle(job: Job): Promise<Again | undefined>
}

/** Numbers of jobs in the queue of all processes. */
export interface DispatchStats {
  /** Jobs that no worker has taken. */
  waiting: number
  active: number
}

/**
 * Passes jobs to workers. A job only says that a session needs a worker. The store says what to do there, so a job
 * may come too late or once too often, but not be lost. Every implementation passes `test/suites/dispatcher.ts`.
 */
export interface Dispatcher {
  /** Adds a job. With `transaction`, a dispatcher in the same database adds it if this transaction commits. */
  enqueue(job: NewJob, transaction?: TransactionQuery): Promise<void>
  /** Starts to take jobs. May be called once. */
  work(options: WorkOptions): Promise<void>
  /** Forgets all jobs of a key, also a job that a worker has taken. The handler of this job continues. */
  cancel(key: string): Promise<void>
  stats(): Promise<DispatchStats>
  /**
   * Stops taking jobs and waits up to `graceMs` for the jobs of this process. Then fires their signals, and waits for
   * them. Default: 0. Idempotent.
   */
  close(graceMs?: number): Promise<void>
}

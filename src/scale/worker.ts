import { existsSync } from "node:fs"
import { hostname } from "node:os"
import type { Tackle } from "../engine/tackle.ts"
import type { WorkspaceOpener } from "../engine/workspaces.ts"
import type { Session } from "../schema/session.ts"
import { createEngines } from "../server/engines.ts"
import { choose } from "../session/inputs.ts"
import { canOpenWorkspace } from "../session/workspace.ts"
import { type Reserved, type Store, StoreError, type TransactionQuery } from "../store/store.ts"
import type { Again, Dispatcher, Job } from "./dispatcher.ts"

/** Options for {@link startWorker}. */
export interface WorkerOptions {
  /** The store for all sessions. All engines must use it. The caller closes it. */
  store: Store
  /** The queue of sessions. The worker closes it. */
  dispatcher: Dispatcher
  /** Opens an engine for a directory, with the option `isWorker`. The worker closes the engine. */
  openEngine(directory: string): Promise<Tackle>
  /** Directories with the projects that the worker may open. All symbolic links must be resolved. */
  roots: readonly string[]
  /**
   * Rebuilds the worktree of a session whose directory does not exist on this machine, in a directory inside the roots.
   * Default: the session waits for a worker on its machine.
   */
  openWorkspace?: WorkspaceOpener
  /**
   * Time in milliseconds for which a session waits for a worker on its machine before its worktree is rebuilt on
   * another machine. Default: 30,000.
   */
  rebuildAfterMs?: number
  /** Maximum number of sessions that run at once. */
  concurrency: number
  /** Interval in milliseconds at which the worker looks for sessions of lost workers. Default: 1000. */
  sweepMs?: number
  /** Receives problems that do not stop the worker. */
  onProblem(message: string, error: unknown): void
}

/** A running worker. */
export interface Worker {
  /**
   * Stops taking sessions, and waits up to `graceMs` for the runs to finish. Then interrupts the remaining runs, and
   * passes their sessions to other workers. Idempotent.
   */
  close(graceMs?: number): Promise<void>
}

/**
 * Time in milliseconds after which a session that this worker cannot run is tried again, by this or another worker.
 */
const elsewhereMs = 2_000

/** Time in milliseconds after which a session is tried again if an error other than a store error stopped its job. */
const failedMs = 15_000

/** Starts a worker, which runs the sessions that the dispatcher passes to it. */
export async function startWorker({
  store,
  dispatcher,
  openEngine,
  roots,
  openWorkspace,
  rebuildAfterMs = 30_000,
  concurrency,
  sweepMs = 1000,
  onProblem,
}: WorkerOptions): Promise<Worker> {
  /** The sessions that this worker is running, keyed by id, each with the controller that stops its run. */
  const running = new Map<string, { stop: AbortController; done: Promise<void> }>()
  /** Sessions that were leased with their jobs, until their handlers start. */
  const reserved = new Map<string, Reserved>()
  let isDraining = false
  const engines = createEngines({
    roots,
    open: openEngine,
    isActive: async (_, sessionID) => running.has(sessionID),
    idleMs: 15 * 60_000,
    maxEngines: Math.max(64, concurrency),
    onProblem,
  })
  engines.subscribe(({ type, sessionID }) => {
    // While this worker is stopping, other workers deliver new inputs.
    if (isDraining && type === "run.completed") running.get(sessionID)?.stop.abort()
  })

  /**
   * Returns the session if it can run here, after rebuilding its worktree if necessary, or undefined if it cannot.
   * `since` is the time at which the session began to wait for a worker on its machine, in milliseconds since the
   * epoch.
   */
  async function openHere(
    session: Session,
    { since, signal }: { since: number; signal: AbortSignal },
  ): Promise<Session | undefined> {
    const { id, directory } = session
    if (engines.isServed(directory) && (!openWorkspace || existsSync(directory))) return session
    if (!openWorkspace || !canOpenWorkspace(session, { host: hostname(), directories: [], clones: true }))
      return undefined
    if (Date.now() - since < rebuildAfterMs) return undefined
    await openWorkspace(session, signal)
    return store.session(id)
  }

  /** Leases the sessions of input jobs in the transaction that takes the jobs, if their engines are open. */
  async function reserve(
    jobs: readonly Pick<Job, "key" | "reason">[],
    query: TransactionQuery,
  ): Promise<() => void> {
    const keys = jobs.filter(({ key, reason }) => reason === "input" && !running.has(key))
    if (!store.reserve || keys.length === 0) return () => {}
    const confirm = await store.reserve(
      {
        sessionIDs: keys.map(({ key }) => key),
        holderOf: ({ directory }) => engines.find(directory)?.sessions.holder,
        inputsOf: (_, pending) => choose(pending, "next"),
      },
      query,
    )
    return () => {
      for (const each of confirm()) reserved.set(each.session.id, each)
    }
  }

  async function handle(job: Job): Promise<Again | undefined> {
    const { key: sessionID } = job
    const early = reserved.get(sessionID)
    reserved.delete(sessionID)
    // An earlier run of the session may still be ending, because it lost its lease or because its job ended together
    // with its lease.
    while (running.has(sessionID)) await running.get(sessionID)?.done
    const { promise: done, resolve } = Promise.withResolvers<void>()
    const stop = new AbortController()
    running.set(sessionID, { stop, done })
    try {
      return await runJob(job, early?.session, stop)
    } finally {
      running.delete(sessionID)
      resolve()
      await early?.release()
    }
  }

  async function runJob(
    { key: sessionID, reason, since = Date.now(), signal, endIn }: Job,
    known: Session | undefined,
    stop: AbortController,
  ): Promise<Again | undefined> {
    try {
      const found = known ?? (await store.session(sessionID))
      if (!found) return undefined
      const session = await openHere(found, { since, signal: AbortSignal.any([signal, stop.signal]) })
      if (!session) return { reason, afterMs: elsewhereMs, since }
      const outcome = await engines.use(session.directory, ({ sessions }) =>
        sessions.work(sessionID, {
          continues: reason === "continue",
          signal: AbortSignal.any([signal, stop.signal]),
          onRelease: endIn,
        }),
      )
      if (outcome === "held") return { reason, afterMs: 1000 }
      return outcome === "stopped" ? { reason: "continue", afterMs: 0 } : undefined
    } catch (error) {
      onProblem(`session ${sessionID} could not be run`, error)
      return { reason, afterMs: StoreError.isThrown(error) ? 1000 : failedMs }
    }
  }

  /** Passes the sessions of lost workers to other workers. */
  async function sweep(): Promise<void> {
    for (const { sessionID, epoch, expired } of (await store.abandoned?.()) ?? []) {
      // The id contains the time, because a paused worker can renew its lease after the lease has expired, and then be
      // killed.
      const id = `lease ${epoch} ${expired}`
      await dispatcher.enqueue({ key: sessionID, id, reason: "continue", replaces: true })
    }
  }

  let sweeping: Promise<void> | undefined
  const sweeper = setInterval(() => {
    sweeping ??= sweep()
      .catch((error: unknown) => onProblem("the sessions of lost workers could not be read", error))
      .finally(() => {
        sweeping = undefined
      })
  }, sweepMs)

  await dispatcher.work({ concurrency, handle, reserve })

  async function close(graceMs: number): Promise<void> {
    isDraining = true
    clearInterval(sweeper)
    await sweeping
    await dispatcher.close(graceMs)
    await engines.close()
  }

  let closed: Promise<void> | undefined
  return {
    close(graceMs = 0) {
      closed ??= close(graceMs)
      return closed
    },
  }
}

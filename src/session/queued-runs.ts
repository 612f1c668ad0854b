import type { EventOf } from "../event/events.ts"
import type { Store } from "../store/store.ts"
import { orAbort, sleep, throwIfAborted } from "../util/abort.ts"
import { newId } from "../util/id.ts"
import type { Conversation } from "./conversation.ts"
import { SessionBusyError } from "./handle.ts"
import { choose } from "./inputs.ts"
import { waitForLease } from "./lease.ts"

/** A lock that one operation holds. */
export interface HeldLock {
  /** Signal that aborts when the operation must stop. */
  stopped: AbortSignal
  stop(): void
  release(): void
}

/**
 * Creates the lock for a session. The lock allows one operation at a time in this engine, and can stop that operation.
 */
export function createPromptLock(sessionID: string) {
  let held: { stop(): void; released: Promise<void> } | undefined
  return {
    /** Acquires the lock. The caller must release it. Throws `SessionBusyError` if the lock is already held. */
    acquire(): HeldLock {
      if (held) throw new SessionBusyError(sessionID)
      const controller = new AbortController()
      const stop = () => controller.abort()
      const { promise: released, resolve } = Promise.withResolvers<void>()
      held = { stop, released }
      return {
        stopped: controller.signal,
        stop,
        release() {
          held = undefined
          resolve()
        },
      }
    },
    /** Stops the operation that holds the lock, if any. */
    stop(): void {
      held?.stop()
    },
    /** Resolves when the current holder releases the lock. Undefined if the lock is free. */
    get released(): Promise<void> | undefined {
      return held?.released
    },
  }
}

/**
 * Returns true if the session needs a worker: to deliver an input, or to continue the run of a lost worker.
 */
export async function isForWorkers(store: Store, sessionID: string): Promise<boolean> {
  if (choose(await store.inputs(sessionID), "next").length > 0) return true
  return ((await store.abandoned?.(sessionID)) ?? []).length > 0
}

/** Starts runs for the inputs of one session, one after another. */
export interface QueuedRuns {
  /**
   * Delivers the waiting inputs, now or when the current operation ends. Does nothing if workers deliver the inputs.
   */
  start(): void
  /**
   * Like {@link start}, but requests a worker if workers deliver the inputs. Rejects if the request cannot be stored.
   */
  request(): Promise<void>
  /** Records the end of a run. */
  ended(event: EventOf<"run.completed">): void
  /**
   * Stops the current operation. No run starts until the next `start` or `request`. Resolves when the operation has
   * ended.
   */
  stop(): Promise<void>
  /** True while an operation is running or inputs are being delivered. */
  readonly isActive: boolean
  /** See `SessionHandle.wait`. */
  wait(options?: { signal?: AbortSignal }): Promise<EventOf<"run.completed"> | undefined>
}

/** Time in milliseconds that another engine may need to start its next run. */
const nextRunMs = 1_000
/** Interval in milliseconds between attempts and between checks for the next run of another engine. */
const retryMs = 200

/**
 * Starts the queued runs of one session. `run` runs the next inputs, if any, and releases the lock. `run` returns false
 * if the run must wait for other engines or other sessions, and rejects if the inputs could not be read.
 */
export function createQueuedRuns(
  { engine, inputs, session: { id: sessionID } }: Conversation,
  lock: ReturnType<typeof createPromptLock>,
  run: (held: HeldLock) => Promise<boolean>,
): QueuedRuns {
  const { store, holder, dispatch, assertOpen } = engine
  let stopped = new AbortController()
  /** The loop in progress. Resolves when no more inputs can be delivered. */
  let running: Promise<void> | undefined
  /** Whether inputs may have arrived since the queue was last read. */
  let again = false
  let last: EventOf<"run.completed"> | undefined

  function start(): void {
    if (dispatch) return
    startHere()
  }

  function startHere(): void {
    if (stopped.signal.aborted) stopped = new AbortController()
    again = true
    running ??= runQueue()
  }

  async function runQueue(): Promise<void> {
    while (again) {
      again = false
      await runAll(stopped.signal).catch(() => {
        // `stop` was called, or the store failed and the run has reported the failure. The inputs stay in the store.
      })
    }
    // Runs in the same turn of the event loop as the last check of `again`, so that no call to `start` is lost.
    running = undefined
  }

  async function runAll(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      assertOpen()
      if (lock.released) await lock.released
      else if (!(await inputs.hasNext())) return
      else if (await isUsedElsewhere()) await waitForLease({ store, sessionID }, isFree, signal)
      else if (signal.aborted || lock.released) continue
      else if (!(await run(lock.acquire()))) await sleep(retryMs, signal)
    }
  }

  const isDispatched = async () => dispatch !== undefined && (await isForWorkers(store, sessionID))

  async function isUsedElsewhere(): Promise<boolean> {
    const present = await store.holder(sessionID)
    return present !== undefined && present.id !== holder.id
  }

  /** Returns true if a worker runs the session or no worker is needed anymore. */
  const isTaken = async () => (await isUsedElsewhere()) || !(await isDispatched())

  const isFree = async () => !(await isUsedElsewhere())

  /**
   * Waits until no other engine uses the session. An engine releases its lease between two runs of its queue, so this
   * function waits for the next run if an input can be delivered.
   */
  async function waitElsewhere(signal: AbortSignal): Promise<void> {
    for (let waited = 0; waited < nextRunMs; waited += retryMs) {
      if (await isUsedElsewhere()) {
        await waitForLease({ store, sessionID }, isFree, signal)
        waited = 0
      }
      if (!(await inputs.hasNext())) return
      await sleep(retryMs, signal)
    }
  }

  return {
    start,
    async request() {
      if (dispatch) await dispatch({ key: sessionID, id: newId("job"), reason: "input" })
      else startHere()
    },
    get isActive() {
      return (lock.released ?? running) !== undefined
    },
    ended(event) {
      last = event
    },
    async stop() {
      stopped.abort()
      lock.stop()
      await lock.released
    },
    async wait({ signal = new AbortController().signal } = {}) {
      for (;;) {
        throwIfAborted(signal)
        const work = lock.released ?? running
        if (work) await orAbort(work, signal)
        else if (await isUsedElsewhere()) await waitElsewhere(signal)
        else if (await isDispatched())
          await waitForLease({ store, sessionID, seesWrites: true }, isTaken, signal)
        // Checks again, because a worker may have leased the session between the two checks.
        else if (!(await isUsedElsewhere()) && !(await isDispatched()) && !(lock.released ?? running))
          return last
      }
    },
  }
}

/** Watches the main thread from another thread. See `cli/process/watchdog.ts`. */
export interface Watchdog {
  /** Resolves when the other thread has started to watch, or has failed to start. Never rejects. */
  ready: Promise<void>
  /** Called when a time limit starts, with the time left in milliseconds and the message to use when it expires. */
  limitStarted(id: number, ms: number, message: string): void
  limitEnded(id: number): void
}

interface Limit {
  /** Value of `performance.now()` at which the time limit expires. */
  end: number
  message: string
}

const limits = new Map<number, Limit>()
let ids = 0
let requested: (() => Watchdog) | undefined
let watchdog: Watchdog | undefined

/**
 * Starts a requested watchdog, and resolves when it is ready. Call this function before third-party code runs in this
 * process, because that code may block the main thread. Never rejects.
 */
export async function watchThirdPartyCode(): Promise<void> {
  if (requested && !watchdog) {
    watchdog = requested()
    for (const [id, { end, message }] of limits) watchdog.limitStarted(id, end - performance.now(), message)
  }
  await watchdog?.ready
}

/**
 * Reports a time limit to the watchdog. The main thread enforces the limit with a timer; the watchdog enforces it if
 * the main thread is blocked. Call the returned function when the limit no longer applies.
 */
export function noteTimeLimit(ms: number, message: string): () => void {
  ids += 1
  const id = ids
  limits.set(id, { end: performance.now() + ms, message })
  watchdog?.limitStarted(id, ms, message)
  return () => {
    if (limits.delete(id)) watchdog?.limitEnded(id)
  }
}

/**
 * Requests a watchdog. Calls `start` when third-party code is about to run, and not earlier, because a thread costs
 * time and memory. The returned function withdraws the request. It does not stop a watchdog that is already running.
 */
export function requestWatchdog(start: () => Watchdog): () => void {
  requested = start
  return () => {
    requested = undefined
    watchdog = undefined
  }
}

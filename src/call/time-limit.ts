import { TimeoutError } from "../util/abort.ts"
import { noteTimeLimit } from "../util/main-thread.ts"
import { longestTimerMs } from "../util/time.ts"

/** A signal with an optional time limit that can be paused. */
export interface TimeLimit {
  /** Signal that aborts when the run's signal aborts, or with a {@link TimeoutError} when the time limit expires. */
  readonly signal: AbortSignal
  /** Starts the clock. */
  start(): void
  /** Runs `work` with the clock stopped, for example while the user answers a question. */
  outside<T>(work: () => Promise<T>): Promise<T>
  /** Stops the clock permanently. */
  end(): void
}

/**
 * Creates a time limit of `ms` milliseconds. Without `ms`, the time is unlimited and `signal` is used unchanged.
 * `expired` is the error message when the limit expires.
 */
export function createTimeLimit(
  signal: AbortSignal,
  { ms, expired }: { ms: number | undefined; expired: string },
): TimeLimit {
  if (ms === undefined) return { signal, start() {}, outside: (work) => work(), end() {} }
  const own = new AbortController()
  let left = ms
  let since = 0
  let timer: NodeJS.Timeout | undefined
  let endNote = () => {}
  let started = false
  let paused = 0

  function run(): void {
    since = performance.now()
    timer = setTimeout(expire, Math.min(left, longestTimerMs))
    endNote = noteTimeLimit(left, expired)
  }

  function hold(): void {
    if (timer === undefined) return
    clearTimeout(timer)
    endNote()
    timer = undefined
    left = Math.max(0, left - (performance.now() - since))
  }

  function expire(): void {
    endNote()
    own.abort(new TimeoutError(expired, ms ?? 0))
  }

  return {
    signal: AbortSignal.any([signal, own.signal]),
    start() {
      started = true
      if (paused === 0) run()
    },
    async outside(work) {
      paused += 1
      hold()
      try {
        return await work()
      } finally {
        paused -= 1
        if (paused === 0 && started) run()
      }
    },
    end() {
      started = false
      hold()
    },
  }
}

/** Tracks the time that a call spends waiting for the user. Parallel waits count once. */
export interface UserWaits {
  /** Runs `work`. The time from the call to `begin` until `work` ends counts as waiting for the user. */
  during<T>(work: (begin: () => void) => Promise<T>): Promise<T>
  /** Returns the total waiting time in milliseconds, including a wait in progress. */
  total(): number
}

/** Creates a tracker with no wait in progress. */
export function createUserWaits(): UserWaits {
  let open = 0
  let since = 0
  let sum = 0

  return {
    async during(work) {
      let begun = false
      try {
        return await work(() => {
          if (begun) return
          begun = true
          if (open === 0) since = performance.now()
          open += 1
        })
      } finally {
        if (begun) open -= 1
        if (begun && open === 0) sum += performance.now() - since
      }
    },
    total: () => Math.round(sum + (open > 0 ? performance.now() - since : 0)),
  }
}

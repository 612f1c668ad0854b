import { TimeoutError } from "../util/abort.ts"

/** The signal of a piece of work, and its own limit of time where it has one. */
export interface TimeLimit {
  /** Fires with the run's signal, or with a {@link TimeoutError} when the time is over. */
  readonly signal: AbortSignal
  /** The work goes on from now. */
  start(): void
  /** Runs `work` without its time counting: what a person takes to answer is not the tool's. */
  outside<T>(work: () => Promise<T>): Promise<T>
  end(): void
}

/** Longer waits than this fire at once in Node. */
const longestTimer = 2 ** 31 - 1

/** `ms` of work, from `start` on; without it the signal is the run's own. `expired`: what the error says. */
export function createTimeLimit(
  signal: AbortSignal,
  { ms, expired }: { ms: number | undefined; expired: string },
): TimeLimit {
  if (ms === undefined) return { signal, start() {}, outside: (work) => work(), end() {} }
  const own = new AbortController()
  let left = ms
  let since = 0
  let timer: NodeJS.Timeout | undefined
  let started = false
  let paused = 0

  function run(): void {
    since = performance.now()
    timer = setTimeout(expire, Math.min(left, longestTimer))
  }

  function hold(): void {
    if (timer === undefined) return
    clearTimeout(timer)
    timer = undefined
    left = Math.max(0, left - (performance.now() - since))
  }

  function expire(): void {
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

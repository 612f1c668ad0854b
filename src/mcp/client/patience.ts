import { TimeoutError } from "../../util/abort.ts"

/** Waits for signs of life. */
export interface Patience {
  /** The signal given, and fires too once nothing was heard for so long, with a `TimeoutError`. */
  signal: AbortSignal
  /** A sign of life: the time begins anew. */
  heard(): void
  /** Runs `work` without its time counting: what a person takes to answer is not the server's. */
  pause<T>(work: () => Promise<T>): Promise<T>
  /** Nobody waits any more. */
  end(): void
}

/** Begins at once. `ms` at most 2^31 - 1; `expired` is what the error says. */
export function createPatience(signal: AbortSignal, ms: number, expired: string): Patience {
  const own = new AbortController()
  let timer: NodeJS.Timeout | undefined
  let paused = 0
  let ended = false

  function heard(): void {
    clearTimeout(timer)
    if (paused === 0 && !ended) timer = setTimeout(() => own.abort(new TimeoutError(expired, ms)), ms)
  }

  heard()
  return {
    signal: AbortSignal.any([signal, own.signal]),
    heard,
    async pause(work) {
      paused += 1
      heard()
      try {
        return await work()
      } finally {
        paused -= 1
        heard()
      }
    },
    end() {
      ended = true
      clearTimeout(timer)
    },
  }
}

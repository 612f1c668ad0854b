import { abortedError } from "../util/abort.ts"
import type { TackleError } from "../util/errors.ts"

/** Ends a stream when the caller's signal aborts, or when the server sends nothing for too long. */
export interface StreamWatch {
  /** Aborts when the stream must end. The reason is {@link stopped}. */
  readonly signal: AbortSignal
  /** Error that ended the stream, or undefined while the stream may continue. */
  readonly stopped: TackleError | undefined
  /** Starts measuring the time without data. */
  wait(): void
  /** Stops measuring the time without data until the next call to `wait`. */
  answered(): void
  /** Sets the maximum time without data, in milliseconds, for this and later waits. */
  setLimit(ms: number): void
  end(): void
}

/**
 * Creates a watch. The first wait begins immediately. `silence` creates the error for an exceeded limit. All waits
 * share one timer, so that starting a wait only reads the clock.
 */
export function watchStream(
  signal: AbortSignal,
  limitMs: number,
  silence: (limitMs: number) => TackleError,
): StreamWatch {
  const controller = new AbortController()
  let limit = limitMs
  let waitingSince: number | undefined = performance.now()
  let stopped: TackleError | undefined
  let timer = setTimeout(check, limit)

  const onAbort = () => stop(abortedError(signal))
  signal.addEventListener("abort", onAbort, { once: true })
  if (signal.aborted) onAbort()

  function check(): void {
    const silent = waitingSince === undefined ? 0 : performance.now() - waitingSince
    if (silent >= limit) stop(silence(limit))
    // Timers may fire slightly early.
    else timer = setTimeout(check, limit - silent + 1)
  }

  function stop(error: TackleError): void {
    if (stopped !== undefined) return
    stopped = error
    controller.abort(error)
  }

  return {
    signal: controller.signal,
    get stopped() {
      return stopped
    },
    wait() {
      waitingSince = performance.now()
    },
    answered() {
      waitingSince = undefined
    },
    setLimit(ms) {
      if (ms === limit) return
      limit = ms
      clearTimeout(timer)
      timer = setTimeout(check, limit)
    },
    end() {
      clearTimeout(timer)
      signal.removeEventListener("abort", onAbort)
    },
  }
}

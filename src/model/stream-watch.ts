import { abortedError } from "../util/abort.ts"
import type { TackleError } from "../util/errors.ts"

/** Ends a stream from outside: at the caller's signal, or when the other side stays silent for too long. */
export interface StreamWatch {
  /** Fires when the stream is to end. Its reason is {@link stopped}. */
  readonly signal: AbortSignal
  /** Why it was ended, once it was. */
  readonly stopped: TackleError | undefined
  /** From now on we wait for the other side. */
  wait(): void
  /** It answered: until the next `wait` its time does not run. */
  answered(): void
  /** How long it may stay silent from now on. */
  setLimit(ms: number): void
  end(): void
}

/**
 * `silence` makes the error for a limit that ran out. One timer serves all waits, so that a wait costs no more than a
 * look at the clock.
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
    // One millisecond more, since timers may fire a fraction too early.
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

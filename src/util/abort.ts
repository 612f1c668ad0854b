import { TackleError } from "./errors.ts"
import { longestTimerMs } from "./time.ts"

/** Thrown when the user or the caller stops the work, or when the process exits. */
export class AbortedError extends TackleError {
  constructor(message = "The call was aborted before it finished.", cause?: unknown) {
    super(message, { code: "aborted", recoverable: false, cause })
  }
}

/** Thrown when a time limit is exceeded. */
export class TimeoutError extends TackleError {
  readonly ms: number
  constructor(message: string, ms: number) {
    super(message, { code: "timeout", recoverable: true })
    this.ms = ms
  }
}

/** Throws the error that {@link abortedError} returns if the signal is aborted. */
export function throwIfAborted(signal: AbortSignal): void {
  if (signal.aborted) throw abortedError(signal)
}

/** Returns the signal's abort reason if it is a `TackleError`. Wraps any other reason in an {@link AbortedError}. */
export function abortedError(signal: AbortSignal): TackleError {
  return TackleError.isInstance(signal.reason) ? signal.reason : new AbortedError(undefined, signal.reason)
}

/**
 * Settles like `promise`. If the signal aborts first, rejects with the error that {@link abortedError} returns. Does
 * not stop the work behind the promise.
 */
export async function orAbort<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  throwIfAborted(signal)
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  const onAbort = () => reject(abortedError(signal))
  signal.addEventListener("abort", onAbort, { once: true })
  try {
    return await Promise.race([promise, aborted])
  } finally {
    signal.removeEventListener("abort", onAbort)
  }
}

/**
 * Resolves after `ms` milliseconds. If the signal aborts first, rejects with the error that {@link abortedError}
 * returns.
 */
export async function sleep(ms: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms)
  try {
    await orAbort(promise, signal)
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Calls `work` with a signal that aborts when `signal` aborts, or after `ms` milliseconds with a {@link TimeoutError}
 * as the reason. Settles like the promise that `work` returns.
 */
export async function withTimeLimit<T>(
  { ms, message, signal }: { ms: number; message: string; signal: AbortSignal },
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(new TimeoutError(message, ms)), ms)
  try {
    return await work(AbortSignal.any([signal, late.signal]))
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Settles like `promise`, or resolves to undefined after `ms` milliseconds. Does not stop the work behind the promise.
 */
export async function within<T>(promise: Promise<T>, ms: number): Promise<T | undefined> {
  const { promise: late, resolve } = Promise.withResolvers<undefined>()
  const timer = setTimeout(resolve, ms, undefined)
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Keeps the process alive until `work` settles. Used for work that Node does not wait for, such as waiting for the
 * user's reply to a permission request. Settles like `work`.
 */
export async function keepAlive<T>(work: Promise<T>): Promise<T> {
  const alive = setInterval(() => {}, longestTimerMs)
  try {
    return await work
  } finally {
    clearInterval(alive)
  }
}

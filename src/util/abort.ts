import { TackleError } from "./errors.ts"

/** The work was stopped from outside: by the person, the caller or the end of the process. */
export class AbortedError extends TackleError {
  constructor(message = "The call was aborted before it finished.", cause?: unknown) {
    super(message, { code: "aborted", recoverable: false, cause })
  }
}

/** A limit of time ran out. */
export class TimeoutError extends TackleError {
  readonly ms: number
  constructor(message: string, ms: number) {
    super(message, { code: "timeout", recoverable: true })
    this.ms = ms
  }
}

/** Throws {@link AbortedError} if the signal has fired. */
export function throwIfAborted(signal: AbortSignal): void {
  if (signal.aborted) throw abortedError(signal)
}

/** The reason of an aborted signal as an error of ours; a {@link TimeoutError} given as reason stays one. */
export function abortedError(signal: AbortSignal): TackleError {
  return TackleError.isInstance(signal.reason) ? signal.reason : new AbortedError(undefined, signal.reason)
}

/** Settles as `promise` does, or rejects as soon as the signal fires. The promise itself is not stopped by this. */
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

/** Waits; rejects with the signal's reason when it fires first. */
export async function sleep(ms: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms)
  try {
    await orAbort(promise, signal)
  } finally {
    clearTimeout(timer)
  }
}

/** Settles as `promise` does, or resolves to undefined when it takes longer. The promise itself is not stopped by this. */
export async function within<T>(promise: Promise<T>, ms: number): Promise<T | undefined> {
  const { promise: late, resolve } = Promise.withResolvers<undefined>()
  const timer = setTimeout(resolve, ms, undefined)
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

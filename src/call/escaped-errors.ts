import { AsyncLocalStorage } from "node:async_hooks"

/** Receives an error that a tool's code let escape: a rejected promise that it did not await, or a throw in a timer. */
export type EscapeListener = (error: unknown) => void

/** Identifies whose code an escaped error came from. Nothing else reads it. */
const owner = new AsyncLocalStorage<EscapeListener>()
let holders = 0

/**
 * Runs a tool so that an error that escapes it, now or later, reaches `onEscape` and does not end the process. Requires
 * an active {@link holdProcess}.
 */
export function contain<T>(work: () => Promise<T>, onEscape: EscapeListener): Promise<T> {
  return owner.run(onEscape, work)
}

/**
 * Catches escaped errors of contained code until the returned function is called. Other errors keep Node's behaviour:
 * other listeners decide, and without one the process ends with the error.
 */
export function holdProcess(): () => void {
  holders += 1
  if (holders === 1) {
    process.on("unhandledRejection", onRejection)
    process.on("uncaughtException", onException)
  }
  let released = false
  return () => {
    if (released) return
    released = true
    holders -= 1
    if (holders > 0) return
    process.off("unhandledRejection", onRejection)
    process.off("uncaughtException", onException)
  }
}

function onRejection(reason: unknown): void {
  const listener = owner.getStore()
  if (listener) listener(reason)
  // Node turns an unhandled rejection into an exception.
  else if (process.listenerCount("unhandledRejection") === 1) throw reason
}

function onException(error: unknown): void {
  const listener = owner.getStore()
  if (listener) listener(error)
  else if (process.listenerCount("uncaughtException") === 1) {
    console.error(error)
    process.exit(1)
  }
}

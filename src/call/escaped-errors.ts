import { AsyncLocalStorage } from "node:async_hooks"

/**
 * Receives an error that escaped from a tool's code: a rejected promise that was not awaited, or an exception in a
 * timer.
 */
export type EscapeListener = (error: unknown) => void

/** Identifies the code that an escaped error came from. */
const owner = new AsyncLocalStorage<EscapeListener>()
let holders = 0

/**
 * Runs a tool and passes errors that escape from it, now or later, to `onEscape`, so that they do not end the process.
 * Requires an active {@link holdProcess}.
 */
export function contain<T>(work: () => Promise<T>, onEscape: EscapeListener): Promise<T> {
  return owner.run(onEscape, work)
}

/**
 * Catches escaped errors of contained code until the returned function is called. For other errors, Node's default
 * behavior applies: other listeners handle them, and without a listener the process ends with the error.
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
  // As in Node's default behavior, an unhandled rejection becomes an uncaught exception.
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

import { AsyncLocalStorage } from "node:async_hooks"

/** What a tool's code let escape: a promise it left unawaited that rejected, a throw out of a timer. */
export type EscapeListener = (error: unknown) => void

/** Only to tell whose code an escaped error came from; nothing reads it to decide anything. */
const owner = new AsyncLocalStorage<EscapeListener>()
let holders = 0

/**
 * Runs a tool so that an error which escapes it, now or later, reaches `onEscape` and does not end the process.
 * Works while a {@link holdProcess} is in force.
 */
export function contain<T>(work: () => Promise<T>, onEscape: EscapeListener): Promise<T> {
  return owner.run(onEscape, work)
}

/**
 * Catches escaped errors of contained code until the returned function is called. Errors of anybody else keep Node's
 * way: other listeners decide, and where there is none the process ends with the error.
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
  // As Node does where nobody listens: a rejection becomes an exception.
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

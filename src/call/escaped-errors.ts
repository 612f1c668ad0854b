import { AsyncLocalStorage } from "node:async_hooks"
import { readableError, TackleError } from "../util/errors.ts"
import { watchThirdPartyCode } from "../util/main-thread.ts"

/**
 * Receives an error that escaped from a tool's code: a rejected promise that was not awaited, or an exception in a
 * timer.
 */
export type EscapeListener = (error: unknown) => void

/** Thrown by `process.exit` in contained code. */
class ProcessExitError extends TackleError {
  constructor(code: unknown) {
    super(
      `process.exit(${code === undefined ? "" : String(code)}) was called, which would end Tackle. Return a result or throw an error instead.`,
      { code: "call.process-exit", recoverable: true },
    )
  }
}

/** Receives the escaped errors of contained code, and its calls to `process.exit`. */
interface Owner {
  onEscape: EscapeListener
  onExit?(error: ProcessExitError): void
  /** Whether the code is Tackle's own. */
  isBuiltin?: boolean
}

/** Identifies the code that an escaped error or an exit came from. */
const owner = new AsyncLocalStorage<Owner>()
let holders = 0
let exitProcess = process.exit

/**
 * Runs third-party code. Errors that escape from the code, now or later, are passed to `onEscape` and do not end the
 * process. If the code calls `process.exit`, that function throws {@link ProcessExitError}. Requires an active {@link
 * holdProcess}.
 */
export async function contain<T>(work: () => Promise<T>, onEscape: EscapeListener): Promise<T> {
  await watchThirdPartyCode()
  return owner.run({ onEscape }, () => readably(work))
}

/** Like {@link contain}, but also rejects if the code calls `process.exit` outside its promise, such as in a timer. */
export async function containUntilExit<T>(
  work: () => Promise<T>,
  { onEscape, isBuiltin }: Pick<Owner, "onEscape" | "isBuiltin">,
): Promise<T> {
  const { promise: exited, reject: onExit } = Promise.withResolvers<never>()
  return owner.run({ onEscape, onExit, isBuiltin }, () => Promise.race([readably(work), exited]))
}

/** Returns true in contained third-party code, and in code that it has started, such as a timer. */
export function isThirdParty(): boolean {
  const contained = owner.getStore()
  return contained !== undefined && contained.isBuiltin !== true
}

/** Runs third-party code, and replaces a thrown value that cannot be read. */
async function readably<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw readableError(error)
  }
}

/**
 * Catches escaped errors and exits from contained code until the returned function is called. For other errors, Node's
 * default behavior applies: other listeners handle them, and without a listener the process ends with the error.
 */
export function holdProcess(): () => void {
  holders += 1
  if (holders === 1) {
    process.on("unhandledRejection", onRejection)
    process.on("uncaughtException", onException)
    exitProcess = process.exit
    process.exit = exitUnlessContained
  }
  let released = false
  return () => {
    if (released) return
    released = true
    holders -= 1
    if (holders > 0) return
    process.off("unhandledRejection", onRejection)
    process.off("uncaughtException", onException)
    if (process.exit === exitUnlessContained) process.exit = exitProcess
  }
}

function exitUnlessContained(code?: Parameters<typeof process.exit>[0]): never {
  const contained = owner.getStore()
  if (!contained) return exitProcess.call(process, code)
  const error = new ProcessExitError(code)
  contained.onExit?.(error)
  throw error
}

function onRejection(reason: unknown): void {
  const contained = owner.getStore()
  if (contained) contained.onEscape(readableError(reason))
  // As in Node's default behavior, an unhandled rejection becomes an uncaught exception.
  else if (process.listenerCount("unhandledRejection") === 1) throw reason
}

function onException(error: unknown): void {
  const contained = owner.getStore()
  if (contained) contained.onEscape(readableError(error))
  else if (process.listenerCount("uncaughtException") === 1) {
    console.error(error)
    process.exit(1)
  }
}

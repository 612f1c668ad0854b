import { AbortedError, keepAlive } from "../../util/abort.ts"
import { errorMessage, systemAdvice, TackleError, UsageError } from "../../util/errors.ts"
import { requestWatchdog } from "../../util/main-thread.ts"
import { warn } from "./notice.ts"
import { type RunningWatchdog, startWatchdog } from "./watchdog.ts"

/**
 * Exit codes of the command. If several apply, the first of these is used: interrupted, usage, failed, limit, refused.
 */
export const exitCode = { finished: 0, failed: 1, usage: 2, refused: 3, limit: 4, interrupted: 130 } as const

/** Exit codes of `permission check`. */
export const verdictCode = { allow: 0, ask: 10, deny: 11 } as const

/**
 * Reports an error on stderr and sets the exit code. With `verbose`, shows the stack of an unexpected error. An
 * unexpected error counts as a bug, unless the state of the system causes it. `takesVerbose` is true if the command has
 * the flag `--verbose`.
 */
export function reportError(error: unknown, options: { verbose: boolean; takesVerbose: boolean }): void {
  if (error instanceof AbortedError) {
    process.exitCode = exitCode.interrupted
    return
  }
  const known = TackleError.isInstance(error)
  const stack = error instanceof Error ? error.stack : undefined
  const text = known || !options.verbose ? errorMessage(error) : (stack ?? errorMessage(error))
  warn(text)
  const advice = known ? undefined : systemAdvice(error)
  if (advice !== undefined) warn(advice)
  else if (!known && !options.verbose) {
    const hint = options.takesVerbose ? " Run the command with --verbose to see the stack trace." : ""
    warn(`this is a bug in Tackle.${hint}`)
  }
  process.exitCode = error instanceof UsageError ? exitCode.usage : exitCode.failed
}

/**
 * Keeps the process alive until `work` settles, even if no timer or socket is active, for example while a tool waits
 * for a promise that never settles. If other code ends the process first, the exit code is not 0.
 */
export async function untilSettled<T>(work: () => Promise<T>): Promise<T> {
  const onExit = (code: number) => {
    if (code !== exitCode.finished) return
    process.exitCode = exitCode.failed
    warn("the process ended before the command was complete.")
  }
  process.once("exit", onExit)
  try {
    return await keepAlive(work())
  } finally {
    process.off("exit", onExit)
  }
}

/** The original `process.exit`. While an engine is open, `process.exit` throws if a tool or plugin calls it. */
const exitProcess = process.exit.bind(process)

const interruptHandlers: (() => boolean)[] = []

/**
 * Calls the handler on each SIGINT until the command is stopped, for example to stop a run instead of the command. If
 * the handler returns false, {@link interruptible} handles the signal. Calls only the most recently added handler.
 * Returns a function that removes the handler.
 */
export function handleInterrupts(handler: () => boolean): () => void {
  interruptHandlers.push(handler)
  return () => void interruptHandlers.splice(interruptHandlers.indexOf(handler), 1)
}

/** Signals that ask the command to stop. */
const names = ["SIGINT", "SIGTERM", "SIGHUP"] as const

/**
 * Runs work that can be interrupted, and settles like the work. The first signal aborts the `AbortSignal` of `work`
 * instead of ending the process, so that the work can end everything it started. A second signal ends the process
 * immediately. If third-party code blocks the main thread when a signal arrives or a time limit expires, a watchdog
 * thread ends the process and shows `resumeHint`. `work` receives a function `interrupt` that has the same effect as a
 * signal and accepts an optional reason.
 */
export async function interruptible<T>(
  work: (signal: AbortSignal, interrupt: (reason?: unknown) => void) => Promise<T>,
  { resumeHint }: { resumeHint?: string } = {},
): Promise<T> {
  const controller = new AbortController()
  const fire = (reason?: unknown) => {
    if (controller.signal.aborted) exitProcess(exitCode.interrupted)
    controller.abort(reason)
  }
  const onSignal = (name: NodeJS.Signals) => {
    if (name === "SIGINT" && !controller.signal.aborted && interruptHandlers.at(-1)?.()) return
    fire()
  }
  for (const name of names) process.on(name, onSignal)
  let watchdog: RunningWatchdog | undefined
  const endRequest = requestWatchdog(() => (watchdog = startWatchdog(exitProcess, resumeHint)))
  try {
    return await work(controller.signal, fire)
  } finally {
    endRequest()
    watchdog?.stop()
    for (const name of names) process.off(name, onSignal)
  }
}

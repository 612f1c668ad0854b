import { exitCode } from "./exit.ts"

/** Signals by which a person or the system asks a command to stop. */
const names = ["SIGINT", "SIGTERM", "SIGHUP"] as const

/**
 * Does work that a person may interrupt: the signal fires in place of the process's death, so that what the work has
 * started ends with it; a second one ends the process at once. `interrupt` does the same, and may say why by the signal's
 * reason. Settles as the work does.
 */
export async function interruptible<T>(
  work: (signal: AbortSignal, interrupt: (reason?: unknown) => void) => Promise<T>,
): Promise<T> {
  const controller = new AbortController()
  const fire = (reason?: unknown) => {
    if (controller.signal.aborted) process.exit(exitCode.interrupted)
    controller.abort(reason)
  }
  const onSignal = () => fire()
  for (const name of names) process.on(name, onSignal)
  try {
    return await work(controller.signal, fire)
  } finally {
    for (const name of names) process.off(name, onSignal)
  }
}

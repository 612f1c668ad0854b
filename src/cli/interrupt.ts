import { exitCode } from "./exit.ts"

/** Signals by which a person or the system asks a command to stop. */
const names = ["SIGINT", "SIGTERM", "SIGHUP"] as const

/**
 * Does work that a person may interrupt: the signal fires in place of the process's death, so that what the work has
 * started ends with it; a second one ends the process at once. `interrupt` does
 * the same. Settles as the work does.
 */
export async function interruptible<T>(
  work: (signal: AbortSignal, interrupt: () => void) => Promise<T>,
): Promise<T> {
  const controller = new AbortController()
  const fire = () => {
    if (controller.signal.aborted) process.exit(exitCode.interrupted)
    controller.abort()
  }
  for (const name of names) process.on(name, fire)
  try {
    return await work(controller.signal, fire)
  } finally {
    for (const name of names) process.off(name, fire)
  }
}

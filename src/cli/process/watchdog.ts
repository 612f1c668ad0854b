import { closeSync } from "node:fs"
import { extname } from "node:path"
import type { Watchdog } from "../../util/main-thread.ts"
import { asTyped } from "./typed-command.ts"

/** A message to the watchdog thread. `alive` answers a `ping`. */
export type ToWatchdog =
  | { type: "started"; id: number; ms: number; message: string }
  | { type: "ended"; id: number }
  | { type: "alive"; ping: number }

/** Name of the global function with which the watchdog thread ends the process from inside the blocking code. */
export const endName = "tackle.endBlockedProcess"

/** A running watchdog. */
export interface RunningWatchdog extends Watchdog {
  /** Ends the thread and restores the previous effect of signals. */
  stop(): void
}

/**
 * Starts a thread that can end the process while the main thread is blocked, for example by an endless loop in a custom
 * tool. The thread acts when a signal arrives or a time limit expires, and does not keep the process alive. `exit` must
 * end the process at once. The thread shows `resumeHint` when it ends the process.
 */
export function startWatchdog(exit: (code: number) => never, resumeHint?: string): RunningWatchdog {
  const key = Symbol.for(endName)
  Object.defineProperty(globalThis, key, {
    configurable: true,
    value(code: number) {
      // Node would report on stderr that it waits for the debugger, which is the watchdog thread.
      process.once("exit", () => closeSync(2))
      exit(code)
    },
  })
  const file = new URL(`./watchdog-thread${extname(import.meta.filename)}`, import.meta.url)
  // Loaded here, because a top-level import would add several milliseconds to every start.
  const { Worker } = process.getBuiltinModule("node:worker_threads")
  const worker = new Worker(file, {
    execArgv: ["--expose-internals", "--no-warnings"],
    env: {},
    workerData: resumeHint === undefined ? undefined : asTyped(resumeHint),
  })
  const send = (message: ToWatchdog) => worker.postMessage(message)
  const { promise: ready, resolve } = Promise.withResolvers<void>()
  worker.on("message", (ping: number) => {
    resolve()
    send({ type: "alive", ping })
  })
  // Ignores the error. Without the thread, Tackle works but cannot end code that blocks the main thread.
  worker.on("error", () => resolve())
  worker.on("exit", () => resolve())
  worker.unref()
  return {
    ready,
    limitStarted: (id, ms, message) => send({ type: "started", id, ms, message }),
    limitEnded: (id) => send({ type: "ended", id }),
    stop() {
      void worker.terminate()
      Reflect.deleteProperty(globalThis, key)
    },
  }
}

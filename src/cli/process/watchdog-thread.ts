/** Thread that ends the process if its main thread is blocked. Started by `watchdog.ts`. */
import { writeSync } from "node:fs"
import { Session } from "node:inspector"
import { createRequire } from "node:module"
import { constants } from "node:os"
import { parentPort, workerData } from "node:worker_threads"
import { killGroupMembers } from "../../util/process-tree.ts"
import { longestTimerMs } from "../../util/time.ts"
import { endName, type ToWatchdog } from "./watchdog.ts"

/** Exit codes of a process that was blocked when a signal arrived or a time limit expired. */
const exitCode = { signal: 130, limit: 4 } as const

/** Time in ms without a response after which the main thread counts as blocked. */
const answerMs = { signal: 1_000, secondSignal: 300, limit: 2_000 } as const

/** Time in ms after which the programs that the main thread waits for, such as that of `execSync`, are killed. */
const killProgramsMs = 200

/** Time in ms after which a process that cannot run JavaScript is killed. */
const killMs = 2_000

const limits = new Map<number, NodeJS.Timeout>()
let pings = 0
let answered = 0
let ending = false

parentPort?.on("message", (message: ToWatchdog) => {
  if (message.type === "alive") answered = Math.max(answered, message.ping)
  else if (message.type === "started") startLimit(message)
  else clearTimeout(limits.get(message.id))
})

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) onSignal(signal, () => receive(signal))
// The first ping reports that this thread is watching.
ifBlocked(0, () => {})

function startLimit({ id, ms, message }: Extract<ToWatchdog, { type: "started" }>): void {
  const check = () => ifBlocked(answerMs.limit, () => end(message, exitCode.limit))
  limits.set(id, setTimeout(check, Math.min(ms, longestTimerMs)))
}

function receive(signal: "SIGINT" | "SIGTERM" | "SIGHUP"): void {
  const endNow = () => end(`Received ${signal}.`, exitCode.signal)
  const askAgain = () =>
    say("a tool or plugin is blocking the process. Press Ctrl+C again to end the process.")
  if (answered < pings) ifBlocked(answerMs.secondSignal, endNow)
  else ifBlocked(answerMs.signal, signal === "SIGINT" ? askAgain : endNow)
}

/** Calls `then` if the main thread does not respond in time. */
function ifBlocked(ms: number, then: () => void): void {
  pings += 1
  const ping = pings
  parentPort?.postMessage(ping)
  setTimeout(() => {
    if (answered < ping) then()
  }, ms)
}

/**
 * Ends the process from inside the blocking code, so that the process has an exit code. Kills the process if the main
 * thread cannot run JavaScript.
 */
function end(why: string, code: number): void {
  if (ending) return
  ending = true
  const hint = typeof workerData === "string" ? ` ${workerData}` : ""
  say(`${why} A tool or plugin is blocking the process, so the process will now end.${hint}`)
  setInterval(killGroupMembers, killProgramsMs)
  setTimeout(() => process.kill(process.pid, "SIGKILL"), killMs)
  const session = new Session()
  session.connectToMainThread()
  session.post("Runtime.evaluate", { expression: `globalThis[Symbol.for("${endName}")](${code})` })
}

/** Writes to stderr synchronously, because the streams of a worker thread need the main thread. */
function say(text: string): void {
  try {
    writeSync(2, `tackle: ${text}\n`)
  } catch {
    // Ignores the error: standard error is closed.
  }
}

/**
 * Listens for a signal in this thread. Node delivers signals only to the main thread, but its internal signal handle
 * also works in this thread.
 */
function onSignal(name: "SIGINT" | "SIGTERM" | "SIGHUP", listener: () => void): void {
  const { internalBinding } = createRequire(import.meta.url)("internal/test/binding")
  const { Signal } = internalBinding("signal_wrap")
  const handle = new Signal()
  handle.onsignal = listener
  handle.start(constants.signals[name])
}

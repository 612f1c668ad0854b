import { format } from "node:util"
import { fileReason, systemCode } from "../../util/errors.ts"
import { visibleExceptStyles } from "../../view/visible.ts"
import { exitCode } from "./exit.ts"
import { foldNotices, outliveStderr, warn } from "./notice.ts"
import { asTyped } from "./typed-command.ts"

/**
 * Prints a line on stdout. In a terminal, makes hidden characters visible, because tool output or a file name could
 * otherwise move the cursor or change terminal settings.
 */
export function printLine(text: string): void {
  stdout.write(`${stdout.isTTY ? visibleExceptStyles(text) : text}\n`)
}

/** Prints a line on stdout that suggests a command to run next. */
export function printHint(text: string): void {
  printLine(asTyped(text))
}

/** Prints a JSON value on stdout, indented in a terminal. */
export function printJson(value: unknown): void {
  printLine(JSON.stringify(value, null, stdout.isTTY ? 2 : undefined))
}

/** Destination for text output. */
export interface Output {
  write(text: string): unknown
  isTTY?: boolean
}

const write = process.stdout.write.bind(process.stdout)

/** The process's stdout. After `reserveStdout`, only Tackle writes to it. */
export const stdout: Output = { write: (text) => write(text), isTTY: process.stdout.isTTY === true }

/** Writes pieces of text one at a time. Waits for each write, so that memory usage stays low. */
export async function writePieces(pieces: AsyncIterable<string>): Promise<void> {
  for await (const piece of pieces) await new Promise<unknown>((resolve) => write(piece, resolve))
}

let isUsable = true
let hasFailed = false

process.stdout.on("error", (error) => {
  // Ignores the error, because the terminal was closed. See `outliveStderr`.
  if (systemCode(error) === "EIO" || !isUsable) return
  isUsable = false
  if (systemCode(error) !== "EPIPE") {
    hasFailed = true
    warn(`cannot write to standard output: ${fileReason(error)}.`)
    if (process.listenerCount("SIGTERM") === 0) process.exit(exitCode.failed)
  }
  // If the reader of a pipe exits (`tackle session show | head`), this process stops too. SIGTERM lets a run stop
  // cleanly.
  process.kill(process.pid, "SIGTERM")
})

/**
 * Redirects writes to stdout by other code, such as `console.log` in a custom tool, to stderr, so that stdout contains
 * only answers and events.
 */
export function reserveStdout(): void {
  outliveStderr()
  isReserved = true
  if (!isCaptured) process.stdout.write = process.stderr.write.bind(process.stderr)
}

let isReserved = false
let isCaptured = false

/** Texts that other code writes while a screen is shown. */
export interface CapturedOutput {
  /** Calls the listener with the texts so far, and with each later text. */
  listen(listener: (text: string) => void): void
  /** Restores the output. Prints the texts that no listener has received. Can be called more than once. */
  end(): void
}

/** Methods of `console` that write text. */
const consoleMethods = ["debug", "error", "info", "log", "warn"] as const

/**
 * Captures stderr and `console`, so that notices and tools cannot write to the screen. Stdout belongs to the screen,
 * even after {@link reserveStdout}.
 */
export function captureOutput(): CapturedOutput {
  const waiting: string[] = []
  const { write: writeError } = process.stderr
  const original = consoleMethods.map((name) => console[name])
  let listener: ((text: string) => void) | undefined

  function take(text: string): void {
    if (text.trim() === "") return
    if (listener) listener(text.trimEnd())
    else waiting.push(text)
  }

  isCaptured = true
  foldNotices(false)
  process.stdout.write = write
  process.stderr.write = (chunk: string | Uint8Array, ...more: unknown[]) => {
    take(typeof chunk === "string" ? chunk : Buffer.from(chunk).toString())
    const written = more.at(-1)
    if (typeof written === "function") written()
    return true
  }
  for (const name of consoleMethods) console[name] = (...values) => take(format(...values))

  return {
    listen(next) {
      listener = next
      for (const text of waiting.splice(0)) take(text)
    },
    end() {
      if (!isCaptured) return
      isCaptured = false
      foldNotices(true)
      process.stderr.write = writeError
      for (const [index, name] of consoleMethods.entries()) console[name] = original[index] ?? console[name]
      if (isReserved) reserveStdout()
      for (const text of waiting.splice(0)) process.stderr.write(text.endsWith("\n") ? text : `${text}\n`)
    },
  }
}

/**
 * Ends the process with its exit code after all output is written. Does not wait for timers and sockets that custom
 * tools left open.
 */
export async function exitAfterOutput(): Promise<never> {
  await new Promise<unknown>((resolve) => write("", resolve))
  await new Promise<unknown>((resolve) => process.stderr.write("", resolve))
  if (hasFailed) process.exitCode = exitCode.failed
  process.exit()
}

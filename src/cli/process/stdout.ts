import { systemCode } from "../../util/errors.ts"
import { outliveStderr } from "./notice.ts"

/** Prints a line on stdout. */
export function printLine(text: string): void {
  stdout.write(`${text}\n`)
}

/** Prints a JSON value on stdout, indented at a terminal. */
export function printJson(value: unknown): void {
  printLine(JSON.stringify(value, null, stdout.isTTY ? 2 : undefined))
}

/** A destination for text. */
export interface Output {
  write(text: string): unknown
  isTTY?: boolean
}

const write = process.stdout.write.bind(process.stdout)

/** Stdout. Only Tackle writes to it after `reserveStdout`. */
export const stdout: Output = { write: (text) => write(text), isTTY: process.stdout.isTTY === true }

/** Writes pieces one at a time, waiting for each, so that memory stays low. */
export async function writePieces(pieces: AsyncIterable<string>): Promise<void> {
  for await (const piece of pieces) await new Promise<unknown>((resolve) => write(piece, resolve))
}

let isRead = true

process.stdout.on("error", (error) => {
  const code = systemCode(error)
  // The terminal is closed: see `outliveStderr`.
  if (code === "EIO") return
  if (code !== "EPIPE") throw error
  // If the reader of a pipe ends (`tackle session show | head`), this process ends too, and a run ends in order.
  if (isRead) process.kill(process.pid, "SIGTERM")
  isRead = false
})

/**
 * Redirects other writes to stdout, such as `console.log` in a custom tool, to stderr, so that stdout contains only
 * answers and events.
 */
export function reserveStdout(): void {
  outliveStderr()
  process.stdout.write = process.stderr.write.bind(process.stderr)
}

/**
 * Ends the process with its exit code after all output is written. Timers and sockets left by custom tools do not delay
 * it.
 */
export async function exitAfterOutput(): Promise<never> {
  await new Promise<unknown>((resolve) => write("", resolve))
  await new Promise<unknown>((resolve) => process.stderr.write("", resolve))
  process.exit()
}

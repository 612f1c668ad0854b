import { systemCode } from "../../util/errors.ts"
import { outliveStderr } from "./notice.ts"

/** A line on stdout. */
export function printLine(text: string): void {
  stdout.write(`${text}\n`)
}

/** A value on stdout, for programs: indented at a terminal, one line elsewhere. */
export function printJson(value: unknown): void {
  printLine(JSON.stringify(value, null, stdout.isTTY ? 2 : undefined))
}

/** What is written on stdout. */
export interface Output {
  write(text: string): unknown
  isTTY?: boolean
}

const write = process.stdout.write.bind(process.stdout)

/** Stdout, for Tackle alone once it is reserved. */
export const stdout: Output = { write: (text) => write(text), isTTY: process.stdout.isTTY === true }

/** Writes pieces one after the other, each when the one before it is out: however long the whole, little is held. */
export async function writePieces(pieces: AsyncIterable<string>): Promise<void> {
  for await (const piece of pieces) await new Promise<unknown>((resolve) => write(piece, resolve))
}

let isRead = true

process.stdout.on("error", (error) => {
  const code = systemCode(error)
  // The terminal is gone: see `outliveStderr`.
  if (code === "EIO") return
  if (code !== "EPIPE") throw error
  // When whoever reads our output goes away (`tackle session show | head`), we go too, in order where a run is under way.
  if (isRead) process.kill(process.pid, "SIGTERM")
  isRead = false
})

/**
 * From now on what other code of this process prints on stdout, such as a custom tool's `console.log`, goes to stderr:
 * whoever reads our stdout reads answers and events and nothing else.
 */
export function reserveStdout(): void {
  outliveStderr()
  process.stdout.write = process.stderr.write.bind(process.stderr)
}

/**
 * Ends the process with its exit code once all output is out. Nothing of ours is left to wait for; a timer or a socket
 * that a custom tool left behind does not keep the command from ending.
 */
export async function exitAfterOutput(): Promise<never> {
  await new Promise<unknown>((resolve) => write("", resolve))
  await new Promise<unknown>((resolve) => process.stderr.write("", resolve))
  process.exit()
}

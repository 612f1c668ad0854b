import { systemCode } from "../util/errors.ts"

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

// When whoever reads our output goes away (`tackle session show | head`), we go too, in order where a run is under way.
process.stdout.once("error", (error) => {
  if (systemCode(error) !== "EPIPE") throw error
  process.stdout.on("error", () => {})
  process.kill(process.pid, "SIGTERM")
})

/**
 * From now on what other code of this process prints on stdout, such as a custom tool's `console.log`, goes to stderr:
 * whoever reads our stdout reads answers and events and nothing else.
 */
export function reserveStdout(): void {
  process.stdout.write = process.stderr.write.bind(process.stderr)
}

/**
 * Ends the process with its exit code once all output is out. Nothing of ours is left to wait for; a timer or a socket
 * that a custom tool left behind does not keep the command from ending.
 */
export async function leave(): Promise<never> {
  await new Promise<unknown>((resolve) => write("", resolve))
  await new Promise<unknown>((resolve) => process.stderr.write("", resolve))
  process.exit()
}

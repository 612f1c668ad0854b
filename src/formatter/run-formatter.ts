import { stripVTControlCharacters } from "node:util"
import { TimeoutError, within } from "../util/abort.ts"
import { type RecordTree, startProcess } from "../util/process.ts"

/** So much of a formatter's output is kept, from its beginning, in characters. */
const maxOutput = 20_000
/** And so much of that is shown. */
const maxLine = 200

/**
 * Runs a formatter to its end. Undefined: it succeeded; else why not, as one line. With the deadline or the signal it is
 * ended with all that it started. Throws `SpawnError` or `PipeError`.
 */
export async function runFormatter(run: {
  argv: readonly [string, ...string[]]
  cwd: string
  env: Readonly<Record<string, string | undefined>>
  timeoutMs: number
  signal: AbortSignal
  record?: RecordTree | undefined
}): Promise<string | undefined> {
  const { signal, timeoutMs } = run
  let output = ""
  const child = await startProcess({
    argv: run.argv,
    cwd: run.cwd,
    env: run.env,
    record: run.record,
    onOutput(bytes) {
      output = (output + Buffer.from(bytes).toString()).slice(0, maxOutput)
    },
  })
  const { promise: stopped, resolve: stop } = Promise.withResolvers<undefined>()
  const onAbort = () => stop(undefined)
  signal.addEventListener("abort", onAbort, { once: true })
  if (signal.aborted) onAbort()
  try {
    const exit = await within(Promise.race([child.exited, stopped]), timeoutMs)
    if (exit?.code === 0) return undefined
    if (signal.aborted) return stopText("stopped", signal)
    if (!exit) return `took longer than ${timeoutMs / 1000} s and was ended`
    const how = exit.signal ? `was ended by ${exit.signal}` : `ended with exit code ${exit.code}`
    return [how, tellingLine(output)].filter((text) => text !== "").join(": ")
  } finally {
    signal.removeEventListener("abort", onAbort)
    // What it started must not write to the file once the lock is given back.
    await child.kill()
    child.removeRecords()
  }
}

/** Whose limit it was that ended it is said; a stop by the person says itself. */
export function stopText(what: string, { reason }: AbortSignal): string {
  return reason instanceof TimeoutError ? `${what}: ${reason.message}` : what
}

/** The line that names an error, else the first: what follows is where in the formatter it came about. */
function tellingLine(output: string): string {
  const lines = stripVTControlCharacters(output)
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "")
  return (lines.find((line) => /\berrors?\b/i.test(line)) ?? lines[0] ?? "").slice(0, maxLine)
}

import { TimeoutError, within } from "../util/abort.ts"
import { type RecordTree, startProcess } from "../util/process.ts"

/** So much of a formatter's output is kept, from its end, in characters. */
const maxOutput = 2_000
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
      output = (output + Buffer.from(bytes).toString()).slice(-maxOutput)
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
    return [how, lastLine(output)].filter((text) => text !== "").join(": ")
  } finally {
    signal.removeEventListener("abort", onAbort)
    // What it started must not write to the file once the lock is given back.
    await child.kill()
    child.strikeOut()
  }
}

/** Whose limit it was that ended it is said; a stop by the person says itself. */
export function stopText(what: string, { reason }: AbortSignal): string {
  return reason instanceof TimeoutError ? `${what}: ${reason.message}` : what
}

function lastLine(output: string): string {
  const lines = output.split("\n").filter((line) => line.trim() !== "")
  return (lines.at(-1) ?? "").trim().slice(0, maxLine)
}

import { existsSync } from "node:fs"
import { dirname, extname, join } from "node:path"
import { stripVTControlCharacters } from "node:util"
import { TimeoutError, within } from "../util/abort.ts"
import { errorMessage } from "../util/errors.ts"
import { findProgram, programDirectories } from "../util/find-program.ts"
import { isInside } from "../util/paths.ts"
import { PipeError } from "../util/pipe.ts"
import { type RecordTree, SpawnError, startProcess } from "../util/process.ts"
import type { FormatterConfig } from "./config.ts"
import { configuredFormatters, type Formatter } from "./formatters.ts"

/** The result of running one formatter. `problem` describes in one line why the formatter failed or could not run. */
export interface FormatterRun {
  name: string
  /** Whether a process was started. If false, the file is unchanged. */
  ran: boolean
  problem?: string
}

/** Formats changed files. */
export interface FormatterService {
  /** Returns true if `format` would yield a result for the file. Runs no formatter. */
  handles(path: string): boolean
  /**
   * Runs the formatters for the file one after another. Each formatter starts when the next result is requested. Stops
   * at the first failure or when the signal aborts. Formatters change the file in place, so the caller must hold the
   * file's lock. Never rejects.
   */
  format(path: string, signal: AbortSignal): AsyncIterable<FormatterRun>
}

/** Options for {@link createFormatterService}. */
export interface FormatterServiceOptions {
  config: FormatterConfig
  /** Absolute path with links resolved. */
  worktree: string
  /**
   * Whether the project is trusted. If false, programs inside the worktree and formatters that may run project code do
   * not run.
   */
  trusted: boolean
  /** Environment for formatters, including `PATH`. */
  environment: Readonly<Record<string, string | undefined>>
  /** Records running formatters, so that a later process can end them if this process is killed. */
  record?: RecordTree
  /** Time limit in milliseconds for one formatter and file. Default: 10 seconds. */
  timeoutMs?: number
}

const defaultTimeoutMs = 10_000

/**
 * Creates a formatter service, or returns undefined if no formatter is configured. Throws the errors of {@link
 * configuredFormatters}.
 */
export function createFormatterService(options: FormatterServiceOptions): FormatterService | undefined {
  const { worktree, trusted, environment, record, timeoutMs = defaultTimeoutMs } = options
  const locations = { searchPath: environment.PATH ?? "", worktree, trusted }
  const all = configuredFormatters(options.config)
  if (all.length === 0) return undefined
  const isNamed = options.config !== true

  function* runnable(path: string): Generator<Runnable> {
    for (const formatter of all) {
      if (!formatter.extensions.includes(extname(path)) || !isMarked(path, worktree, formatter.marks))
        continue
      const program = findProgram(formatter.command[0], locations)
      const mayRun = program !== undefined && (trusted || !formatter.runsProjectCode)
      // Known formatters that are not installed are skipped. Named formatters are reported.
      if (mayRun || isNamed) yield { formatter, program: mayRun ? program : undefined }
    }
  }

  return {
    handles: (path) => runnable(path).next().done !== true,
    async *format(path, signal) {
      for (const { formatter, program } of runnable(path)) {
        const run = await runOne(formatter, program, path, signal)
        yield { name: formatter.name, ...run }
        if (run.problem !== undefined) return
      }
    },
  }

  async function runOne(
    { name, command, environment: own, runsProjectCode }: Formatter,
    program: string | undefined,
    path: string,
    signal: AbortSignal,
  ): Promise<Omit<FormatterRun, "name">> {
    if (program === undefined) {
      const problem =
        runsProjectCode && !trusted
          ? `it may run code from this untrusted project; trust the project, or set "runsProjectCode": false in formatter.${name} if it runs no project code`
          : `the program ${command[0]} was not found${trusted ? "" : " outside this untrusted project"}`
      return { ran: false, problem }
    }
    if (signal.aborted) return { ran: false, problem: stopText("stopped before it ran", signal) }
    const args = command.slice(1).map((arg) => arg.replaceAll("$FILE", () => path))
    const env = { ...environment, PATH: programDirectories(locations).join(":"), ...own }
    try {
      const argv = [program, ...args] as const
      const problem = await runFormatter({ argv, cwd: worktree, env, timeoutMs, signal, record })
      return { ran: true, problem }
    } catch (error) {
      const ran = !(error instanceof SpawnError || error instanceof PipeError)
      return { ran, problem: errorMessage(error) }
    }
  }
}

interface Runnable {
  formatter: Formatter
  program: string | undefined
}

/** Returns true if a mark exists in a directory from the file's directory up to the worktree. */
function isMarked(path: string, worktree: string, marks: readonly string[]): boolean {
  if (marks.length === 0) return true
  for (let directory = dirname(path); isInside(directory, worktree); directory = dirname(directory)) {
    if (marks.some((name) => existsSync(join(directory, name)))) return true
    if (directory === dirname(directory)) break
  }
  return false
}

/** Maximum number of characters kept from the start of the output. */
const maxOutput = 20_000
/** Maximum number of output characters that a problem shows. */
const maxLine = 200

/**
 * Runs a formatter. Returns undefined on success, or else the problem in one line. At the time limit or when the signal
 * aborts, kills all its processes. Throws `SpawnError` or `PipeError` if the formatter cannot be started.
 */
async function runFormatter(run: {
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
    if (!exit) return `took longer than ${timeoutMs / 1000} s and was killed`
    const how = exit.signal ? `was ended by ${exit.signal}` : `ended with exit code ${exit.code}`
    return [how, errorLine(output)].filter((text) => text !== "").join(": ")
  } finally {
    signal.removeEventListener("abort", onAbort)
    // Also kills child processes, because they must not write to the file after the lock is released.
    await child.kill()
    child.removeRecords()
  }
}

/**
 * Returns the problem to report for a stopped formatter. Names the reason if a time limit stopped the formatter, but
 * not if the user did.
 */
function stopText(what: string, { reason }: AbortSignal): string {
  return reason instanceof TimeoutError ? `${what}: ${reason.message}` : what
}

/** Returns the first line that mentions an error, or the first line of the output. */
function errorLine(output: string): string {
  const lines = stripVTControlCharacters(output)
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "")
  return (lines.find((line) => /\berrors?\b/i.test(line)) ?? lines[0] ?? "").slice(0, maxLine)
}

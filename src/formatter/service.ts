import { existsSync } from "node:fs"
import { dirname, extname, join } from "node:path"
import { errorMessage } from "../util/errors.ts"
import { findProgram, programDirectories } from "../util/find-program.ts"
import { isInside } from "../util/paths.ts"
import { PipeError } from "../util/pipe.ts"
import { type RecordTree, SpawnError } from "../util/process.ts"
import type { FormatterConfig } from "./config.ts"
import { configuredFormatters } from "./formatters.ts"
import type { Formatter } from "./known-formatters.ts"
import { runFormatter, stopText } from "./run-formatter.ts"

/** What one formatter did. `problem`: it ran and failed, or could not run: one line. */
export interface FormatterRun {
  name: string
  /** False: no process of it was there, so that the file is not changed by it. */
  ran: boolean
  problem?: string
}

/** Formats files after they were changed. */
export interface FormatterService {
  /** True if a formatter is there for the file. Looks at the disk, and runs nothing. */
  handles(path: string): boolean
  /**
   * Runs every formatter for the file, one after the other as the runs are asked for, each within the deadline; the first
   * that fails ends it, and so does the signal, whose reason is told where it is a `TimeoutError`. They change the file
   * where it lies: whoever calls this holds its lock, and can look at the file between two runs. Never rejects.
   */
  format(path: string, signal: AbortSignal): AsyncIterable<FormatterRun>
}

/** Which formatters there are, and what they may run. */
export interface FormatterServiceOptions {
  config: FormatterConfig
  /** Absolute, links followed. */
  worktree: string
  /** False: no program that lies in the worktree is run, and none that runs code which the project's settings name. */
  trusted: boolean
  /** What formatters get, `PATH` among it. */
  environment: Readonly<Record<string, string | undefined>>
  /** Writes down what runs, so that it is ended where this process is killed. */
  record?: RecordTree
  /** Longest time for one formatter on one file. Default: 10 seconds. */
  timeoutMs?: number
}

const defaultTimeoutMs = 10_000

/**
 * Undefined where no formatter is switched on. Throws `UsageError` for a configuration that names what is not known.
 */
export function createFormatterService(options: FormatterServiceOptions): FormatterService | undefined {
  const { worktree, trusted, environment, record, timeoutMs = defaultTimeoutMs } = options
  const places = { searchPath: environment.PATH ?? "", worktree, trusted }
  const all = configuredFormatters(options.config)
  if (all.length === 0) return undefined
  const isNamed = options.config !== true

  function* runnable(path: string): Generator<Runnable> {
    for (const formatter of all) {
      if (!formatter.extensions.includes(extname(path)) || !isMarked(path, worktree, formatter.marks))
        continue
      const program = findProgram(formatter.command[0], places)
      const mayRun = program !== undefined && (trusted || !formatter.runsProjectCode)
      // Of those that are only known, the ones that are not installed are not meant.
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
          ? `it may run code of the project, which is not trusted; "runsProjectCode": false in formatter.${name} would say that it does not`
          : `no program ${command[0]} that may be run was found`
      return { ran: false, problem }
    }
    if (signal.aborted) return { ran: false, problem: stopText("stopped before it ran", signal) }
    const args = command.slice(1).map((arg) => arg.replaceAll("$FILE", () => path))
    const env = { ...environment, PATH: programDirectories(places).join(":"), ...own }
    try {
      const argv = [program, ...args] as const
      const problem = await runFormatter({ argv, cwd: worktree, env, timeoutMs, signal, record })
      return { ran: true, ...(problem === undefined ? {} : { problem }) }
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

/** Looks from the file's directory up to the worktree's root. */
function isMarked(path: string, worktree: string, marks: readonly string[]): boolean {
  if (marks.length === 0) return true
  for (let directory = dirname(path); isInside(directory, worktree); directory = dirname(directory)) {
    if (marks.some((name) => existsSync(join(directory, name)))) return true
    if (directory === dirname(directory)) break
  }
  return false
}

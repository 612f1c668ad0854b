import { execFile } from "node:child_process"
import type { SandboxKind } from "../sandbox/sandbox.ts"
import { errorMessage } from "../util/errors.ts"
import { terminalText } from "../util/terminal-text.ts"
import { visible } from "../view/visible.ts"

/** The JSON object that the user's status command receives on stdin. */
export interface StatusInput {
  session?: { id: string; title: string }
  agent: string
  /** The model as `provider/model`. */
  model?: string
  directory: string
  branch?: string
  /** Program that confines commands. `none` if commands run without a sandbox. */
  sandbox?: SandboxKind | "none"
  isRunning: boolean
  /** Cost of the session in US dollars. */
  cost: number
  /** Tokens of the latest request, and their share of the model's context from 0 to 1 if the context size is known. */
  context: { tokens: number; share?: number }
  /** Width of the terminal. */
  columns: number
}

/** Runs the user's own command for the status line. */
export interface StatusCommand {
  /**
   * The first non-empty line of output, with its styles, from the latest run that succeeded and printed one. Undefined
   * until a run prints a line.
   */
  readonly line: string | undefined
  /** Runs the command if the input has changed, but not before the previous run and the minimum interval have ended. */
  update(input: StatusInput): void
  close(): void
}

/** Options for {@link createStatusCommand}. */
export interface StatusCommandOptions {
  /** The program and its arguments. No shell is involved. */
  command: readonly [program: string, ...args: string[]]
  /** Called when the line has changed. */
  onLine(): void
  /** Called the first time that the command fails. */
  onProblem(message: string): void
}

/** Time limit for the command in milliseconds. */
const timeoutMs = 1_000
/** Minimum time in milliseconds between two starts of the command. */
const intervalMs = 300
/** Maximum size of the output in bytes. */
const maxBytes = 64 * 1024

/** Creates the runner. It starts no process and no timer until the first update. */
export function createStatusCommand({ command, onLine, onProblem }: StatusCommandOptions): StatusCommand {
  const [program, ...args] = command
  const closing = new AbortController()
  let line: string | undefined
  let known = ""
  let waiting: string | undefined
  let timer: ReturnType<typeof setTimeout> | undefined
  let isRunning = false
  let hasFailed = false

  function start(): void {
    if (waiting === undefined || isRunning || timer || closing.signal.aborted) return
    const input = waiting
    waiting = undefined
    isRunning = true
    timer = setTimeout(() => {
      timer = undefined
      start()
    }, intervalMs)
    const options = {
      ...({
        timeout: timeoutMs,
        maxBuffer: maxBytes,
        killSignal: "SIGKILL",
        signal: closing.signal,
      } as const),
      encoding: "utf8" as const,
    }
    const child = execFile(program, args, options, (error, stdout) => {
      isRunning = false
      if (closing.signal.aborted) return
      const shown = firstLine(stdout)
      if (error) fail(error.killed ? `it did not finish within ${timeoutMs} ms` : errorMessage(error))
      else if (shown !== undefined && shown !== line) {
        line = shown
        onLine()
      }
      start()
    })
    // Writing fails if the command does not read its input.
    child.stdin?.on("error", () => {})
    child.stdin?.end(input)
  }

  function fail(reason: string): void {
    if (hasFailed) return
    hasFailed = true
    onProblem(`The status_line command failed: ${reason.trim()}`)
  }

  return {
    get line() {
      return line
    },
    update(input) {
      const text = JSON.stringify(input)
      if (text === known) return
      known = text
      waiting = text
      start()
    },
    close() {
      closing.abort()
      clearTimeout(timer)
    },
  }
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: terminals expect this character
const styles = /(\x1b\[[\d;:]*m)/

/** Returns the first line that is not empty, without control sequences other than styles. */
function firstLine(output: string): string | undefined {
  const line = output.split("\n").find((each) => each.trim() !== "")
  if (line === undefined) return undefined
  const parts = line.trimEnd().split(styles)
  const clean = parts.map((part, index) =>
    index % 2 === 1 ? part : visible(terminalText(part)).replaceAll("\t", "    "),
  )
  return `${clean.join("")}\u001b[0m`
}

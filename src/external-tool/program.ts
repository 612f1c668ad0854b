import { errorLine } from "../util/errors.ts"
import type { PinnedFiles } from "../util/pinned-files.ts"
import {
  type Exit,
  type ProcessOptions,
  type RecordTree,
  type RunningProcess,
  startProcess,
} from "../util/process.ts"
import { terminalText } from "../util/terminal-text.ts"
import { privateCopy } from "./private-copy.ts"

/** An executable that implements the protocol, and the values needed to start it. */
export interface Program {
  /** Tool id. */
  name: string
  /** Absolute path of the executable. */
  path: string
  /**
   * The files that may run, with their hashes. If set, the program runs from a private copy. If undefined, the original
   * runs.
   */
  pinned?: PinnedFiles
  host: ProgramHost
}

/** The environment in which programs run. */
export interface ProgramHost {
  /** Working directory for `--describe`. Absolute path. */
  directory: string
  /** Directory for the private copies. Absolute path; created when needed. */
  copies: string
  environment: Readonly<Record<string, string | undefined>>
  record?: RecordTree
}

/**
 * Starts the program or its private copy in a new process group. Throws `SpawnError` or `PipeError` if the program
 * cannot be started, and `ExternalToolError` if the private copy cannot be made.
 */
export async function startProgram(
  { path, pinned, host }: Program,
  options: { args: readonly string[]; cwd: string } & Pick<
    ProcessOptions,
    "input" | "onOutput" | "onErrorOutput"
  >,
): Promise<RunningProcess> {
  const { args, ...rest } = options
  const file = pinned ? privateCopy(path, pinned, host.copies) : path
  const { environment: env, record } = host
  const child = await startProcess({ ...rest, argv: [file, ...args], env, record })
  // Neither promise rejects.
  void Promise.all([child.exited, child.closed]).then(() => child.removeRecords())
  return child
}

/** Returns a description of how a program ended. */
export function describeExit({ code, signal }: Exit): string {
  return signal === null ? `exit code ${code}` : `the signal ${signal}`
}

/** Collects a program's stderr output and discards all but the end. */
export interface ErrorTail {
  push(bytes: Uint8Array): void
  /** Returns the kept output with terminal control characters applied, or an empty string if nothing was written. */
  text(): string
  /**
   * Returns the kept output with a heading, to append to an error message, or an empty string if nothing was written.
   */
  note(): string
  /**
   * Returns the line that names the error, such as the last line of a Python traceback, preceded by ": ", or an empty
   * string.
   */
  reason(): string
}

/** Maximum size of the kept output, in bytes. Enough for a stack trace. */
const keptBytes = 4 * 1024

const namesError = /^(?:[\w.]*(?:Error|Exception)|panic)\b/

/** Creates an empty tail, which keeps the last 4 KB. */
export function createErrorTail(): ErrorTail {
  let tail = Buffer.alloc(0)
  let cut = false
  const text = () => `${cut ? "…" : ""}${terminalText(tail.toString()).trimEnd()}`
  return {
    push(bytes) {
      const all = Buffer.concat([tail, bytes])
      cut ||= all.length > keptBytes
      tail = all.subarray(-keptBytes)
    },
    text,
    note: () => (text() === "" ? "" : `\nThe end of its stderr:\n${text()}`),
    reason() {
      const lines = text()
        .split("\n")
        .filter((line) => line.trim() !== "")
      const line = lines.findLast((text) => namesError.test(text)) ?? lines.at(-1)
      return line === undefined ? "" : `: ${errorLine(line)}`
    },
  }
}

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

/** An executable that speaks the protocol, and the values that each start needs. */
export interface Program {
  /** The tool's id. */
  name: string
  /** Absolute path. */
  path: string
  /** The files that may run. The program then runs from a private copy of them. Absent: it runs in place. */
  pinned?: PinnedFiles
  host: ProgramHost
}

/** The environment of programs. */
export interface ProgramHost {
  /** Working directory of `--describe`. Absolute. */
  directory: string
  /** Directory of the private copies. Absolute; created when needed. */
  copies: string
  environment: Readonly<Record<string, string | undefined>>
  record?: RecordTree
}

/**
 * Starts the program, or its private copy, in its own process group. Throws `SpawnError`, `PipeError` and
 * `ExternalToolError`.
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
  // Neither rejects.
  void Promise.all([child.exited, child.closed]).then(() => child.removeRecords())
  return child
}

/** Describes how a program ended. */
export function describeExit({ code, signal }: Exit): string {
  return signal === null ? `exit code ${code}` : `the signal ${signal}`
}

/** The end of a program's stderr. */
export interface ErrorTail {
  push(bytes: Uint8Array): void
  /** Returns the text as a terminal shows it. Empty if nothing was written. */
  text(): string
  /** Returns the text with a heading, for the end of a message. */
  note(): string
}

/** Enough for a stack trace. In bytes. */
const keptBytes = 4 * 1024

/** Creates an empty tail, which keeps a few KB. */
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
  }
}

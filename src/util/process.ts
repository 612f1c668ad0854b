import { type ChildProcess, spawn } from "node:child_process"
import { closeSync } from "node:fs"
import { within } from "./abort.ts"
import { errorMessage, systemCode, TackleError } from "./errors.ts"
import { newId } from "./id.ts"
import { childEnds, openPipes, ownEnds, type Pipes } from "./process-pipes.ts"
import { joinOutputs, type ProcessInput, readOutput, writeInput } from "./process-streams.ts"
import {
  identifyTree,
  intendTree,
  isGroupAlive,
  killTree,
  markName,
  type TreeIdentity,
  type TreeIntent,
} from "./process-tree.ts"

/** How a process ended: one of the two is set. */
export interface Exit {
  code: number | null
  signal: NodeJS.Signals | null
}

/** Writes a tree down, so that it is ended where this process is killed. The returned function strikes it out. */
export type RecordTree = (tree: TreeIdentity | TreeIntent) => () => void

/** A program to start. Nothing here goes through a shell. */
export interface ProcessOptions {
  /** The program and its arguments. */
  argv: readonly [string, ...string[]]
  cwd: string
  env: Readonly<Record<string, string | undefined>>
  /** Descriptors of ours that the program inherits, as 3 and up. They stay open here. */
  descriptors?: readonly number[]
  /** The output stays open until nothing runs any more, whatever a program does: no need to look for its group. */
  holdsOutput?: boolean
  /** Standard output and standard error in the order of writing. The bytes are overwritten once it returns. */
  onOutput(bytes: Uint8Array): void
  /** Takes standard error apart from the output, where that speaks a protocol. Like `onOutput`. */
  onErrorOutput?(bytes: Uint8Array): void
  /** True: standard input is a pipe that {@link RunningProcess.input} writes to. Default: it is closed. */
  input?: boolean
  /** Gets the intent before anything starts, then the tree. Not called where the system has no `/proc`. */
  record?: RecordTree | undefined
}

/** A running program in a process group of its own, with everything it starts. */
export interface RunningProcess {
  /** For a later start that has to end what this one left. Undefined where the system cannot tell (macOS). */
  readonly identity: TreeIdentity | undefined
  /** Only where it was asked for. Closed when the program and its output have ended. */
  readonly input?: ProcessInput
  /** When the program itself ended; what it started may go on. */
  readonly exited: Promise<Exit>
  /** When the output ended: nothing holds it open any more, or the process was killed. */
  readonly closed: Promise<void>
  /** True while something of its group runs or holds the output open. */
  running(): boolean
  /** Strikes the tree out of the records: nothing of it is left to be ended. */
  strikeOut(): void
  /** SIGTERM to the whole tree, after the grace period SIGKILL; then no more output comes. */
  kill(): Promise<void>
  /** From now on this process does not keep ours from ending. */
  unref(): void
}

/** The program could not be started. */
export class SpawnError extends TackleError {
  constructor(program: string, cause: unknown) {
    const advice =
      systemCode(cause) === "E2BIG"
        ? "The arguments are longer than the system takes (often 128 KB): put long text into a file."
        : "Check that the program is there and may be run."
    super(`${program} could not be started: ${errorMessage(cause)}. ${advice}`, {
      code: "process.spawn",
      recoverable: true,
      cause,
    })
  }
}

/** How long to wait for the last of the output once nothing is left that could write more. */
const lastReadMs = 100

/** Starts a program, with closed input unless told otherwise. Throws {@link SpawnError} or `PipeError`. */
export async function startProcess(options: ProcessOptions): Promise<RunningProcess> {
  const mark = { name: markName, value: newId("prc") }
  const pipes = await openPipes({
    errors: options.onErrorOutput !== undefined,
    input: options.input ?? false,
  })
  const records = createRecords(options.record)
  let child: ChildProcess & { pid: number }
  const line = `${mark.name}=${mark.value}`
  try {
    records.add(intendTree(line))
    child = await spawnInto(pipes, options, { ...options.env, [mark.name]: mark.value })
  } catch (error) {
    records.strikeOut()
    for (const end of ownEnds(pipes)) closeSync(end)
    throw new SpawnError(options.argv[0], error)
  } finally {
    for (const end of childEnds(pipes)) closeSync(end)
  }
  const tree = { group: child.pid, mark: line }
  const identity = identifyTree(tree)
  records.add(identity)
  const output = joinOutputs([
    readOutput(pipes.output.read, options.onOutput),
    ...(pipes.errors && options.onErrorOutput ? [readOutput(pipes.errors.read, options.onErrorOutput)] : []),
  ])
  const input = pipes.input && writeInput(pipes.input.write)
  const exited = exitOf(child)
  // Neither rejects.
  if (input) void Promise.all([exited, output.closed]).then(() => input.stop())

  return {
    identity,
    ...(input ? { input: { write: input.write, end: input.end } } : {}),
    exited,
    closed: output.closed,
    running: () => output.open() || (!options.holdsOutput && isGroupAlive(tree.group)),
    strikeOut: records.strikeOut,
    async kill() {
      await killTree(tree)
      // What was written last is still to be read; only what could not be ended holds the pipe open now.
      await within(output.closed, lastReadMs)
      output.stop()
      input?.stop()
    },
    unref() {
      child.unref()
      output.unref()
    },
  }
}

/** What is written down of one program. */
function createRecords(record: RecordTree | undefined) {
  const strikes: (() => void)[] = []
  return {
    add(tree: TreeIdentity | TreeIntent | undefined): void {
      if (record && tree) strikes.push(record(tree))
    },
    strikeOut(): void {
      for (const strike of strikes.splice(0)) strike()
    },
  }
}

/** Throws what the system throws. */
async function spawnInto(
  { output, errors = output, input }: Pipes,
  options: ProcessOptions,
  env: ProcessOptions["env"],
): Promise<ChildProcess & { pid: number }> {
  const [program, ...args] = options.argv
  const child = spawn(program, args, {
    cwd: options.cwd,
    env,
    detached: true,
    stdio: [input?.read ?? "ignore", output.write, errors.write, ...(options.descriptors ?? [])],
  })
  const { pid } = child
  if (pid !== undefined) return Object.assign(child, { pid })
  // A program that did not start has no number, and says why a moment later.
  const { promise, reject } = Promise.withResolvers<never>()
  child.once("error", reject)
  return promise
}

function exitOf(child: ChildProcess): Promise<Exit> {
  const { promise, resolve } = Promise.withResolvers<Exit>()
  child.once("exit", (code, signal) => resolve({ code, signal }))
  return promise
}

import { type ChildProcess, spawn } from "node:child_process"
import { closeSync } from "node:fs"
import { Socket } from "node:net"
import { within } from "./abort.ts"
import { errorMessage, systemCode, TackleError } from "./errors.ts"
import { newId } from "./id.ts"
import { openInputPipe, openPipe, type Pipe } from "./pipe.ts"
import {
  identifyTree,
  intendTree,
  isGroupAlive,
  killTree,
  markName,
  type TreeIdentity,
  type TreeIntent,
} from "./process-tree.ts"

/** How a process ended. Either `code` or `signal` is set. */
export interface Exit {
  code: number | null
  signal: NodeJS.Signals | null
}

/**
 * Records a tree, so that a later process can end it if this process is killed. The returned function removes the
 * record.
 */
export type RecordTree = (tree: TreeIdentity | TreeIntent) => () => void

/** A program to start. It is started without a shell. */
export interface ProcessOptions {
  /** Program and its arguments. */
  argv: readonly [string, ...string[]]
  cwd: string
  env: Readonly<Record<string, string | undefined>>
  /** Descriptors that the program inherits, numbered from 3. They stay open in this process. */
  descriptors?: readonly number[]
  /**
   * Whether the output stays open until every process of the program has ended. If so, the process group is not
   * checked.
   */
  holdsOutput?: boolean
  /**
   * Receives standard output and, without `onErrorOutput`, standard error, in the order in which they were written. The
   * buffer is reused after the call.
   */
  onOutput(bytes: Uint8Array): void
  /**
   * Whether reading standard output takes at most about a quarter of this process's time. The program then waits until
   * there is room in the pipe. For programs whose output is a protocol, because one program could otherwise keep this
   * process busy.
   */
  paced?: boolean
  /**
   * Receives standard error separately, for programs whose output is a protocol. The buffer is reused after the call.
   */
  onErrorOutput?(bytes: Uint8Array): void
  /**
   * Whether standard input is a pipe for {@link RunningProcess.input}. If false, which is the default, standard input
   * is empty.
   */
  input?: boolean
  /**
   * Called with the intent before the program starts, and with the tree after the start if the program is still
   * running. Not called on systems without `/proc`.
   */
  record?: RecordTree | undefined
}

/** The standard input of a running program. */
export interface ProcessInput {
  /**
   * Resolves when the pipe has accepted the text, which may not happen until the program reads from the pipe. Rejects
   * if no process can read the pipe.
   */
  write(text: string): Promise<void>
  /** Closes the input after all written text. */
  end(): void
}

/** A running program in its own process group, with all processes that it starts. */
export interface RunningProcess {
  /**
   * Lets a later process end the tree if this process is killed. Undefined on systems without `/proc` (macOS), or if the
   * program has already ended.
   */
  readonly identity: TreeIdentity | undefined
  /** Standard input, set if {@link ProcessOptions.input} is true. Closed when the program and its output have ended. */
  readonly input?: ProcessInput
  /** Resolves when the program has ended. Its children may still be running. */
  readonly exited: Promise<Exit>
  /** Resolves when the output has ended, because no process holds it open or the tree was killed. */
  readonly closed: Promise<void>
  /** Resolves when standard output has ended. Standard error may still be open. */
  readonly outputEnded: Promise<void>
  /** Returns true while a process in the group runs or holds the output open. */
  running(): boolean
  /** Removes the tree's records. Call this method when no process in the tree is left. */
  removeRecords(): void
  /**
   * Sends SIGTERM to the whole tree, and SIGKILL after `graceMs` milliseconds (default: 3,000). After the promise
   * resolves, no more output is delivered.
   */
  kill(graceMs?: number): Promise<void>
  /** Allows this process to exit while the program runs. */
  unref(): void
}

/** Thrown when a program cannot be started. */
export class SpawnError extends TackleError {
  constructor(program: string, cause: unknown) {
    super(`${program} could not be started: ${errorMessage(cause)}. ${spawnAdvice(cause)}`, {
      code: "process.spawn",
      recoverable: true,
      cause,
    })
  }
}

function spawnAdvice(cause: unknown): string {
  switch (systemCode(cause)) {
    case "E2BIG":
      return "The arguments are longer than the system allows (on Linux, 128 KB per argument). Put long text into a file."
    case "EAGAIN":
    case "ENOMEM":
    case "EMFILE":
    case "ENFILE":
      return "The system has no free processes, memory or files. End programs that are not needed, then try again."
    default:
      return "Check that the program and its working directory exist, and that the program is executable."
  }
}

/** Time in ms to wait for remaining output after every writer has ended. */
const lastReadMs = 100

/**
 * Starts a program. Throws {@link SpawnError} if the program cannot be started, and `PipeError` if its pipes cannot be
 * created.
 */
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
    records.remove()
    for (const end of ownEnds(pipes)) closeSync(end)
    throw new SpawnError(options.argv[0], error)
  } finally {
    for (const end of childEnds(pipes)) closeSync(end)
  }
  const tree = { group: child.pid, mark: line }
  const identity = identifyTree(tree)
  records.add(identity)
  const standardOutput = readOutput(pipes.output.read, options.onOutput, options.paced)
  const output = joinOutputs([
    standardOutput,
    ...(pipes.errors && options.onErrorOutput ? [readOutput(pipes.errors.read, options.onErrorOutput)] : []),
  ])
  const input = pipes.input && writeInput(pipes.input.write)
  const exited = exitOf(child)
  // Neither promise rejects.
  if (input) void Promise.all([exited, output.closed]).then(() => input.stop())

  return {
    identity,
    input: input && { write: input.write, end: input.end },
    exited,
    closed: output.closed,
    outputEnded: standardOutput.closed,
    running: () => output.open() || (!options.holdsOutput && isGroupAlive(tree.group)),
    removeRecords: records.remove,
    async kill(graceMs) {
      await killTree(tree, graceMs)
      // The last output may still be in the pipe. After this wait, only a process that cannot be ended still holds the
      // pipe open.
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

/** Collects the records of one program. */
function createRecords(record: RecordTree | undefined) {
  const removals: (() => void)[] = []
  return {
    add(tree: TreeIdentity | TreeIntent | undefined): void {
      if (record && tree) removals.push(record(tree))
    },
    remove(): void {
      for (const remove of removals.splice(0)) remove()
    },
  }
}

/** Starts the program. Throws the system error if the program cannot be started. */
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
  // A program that did not start has no pid. The error event follows.
  const { promise, reject } = Promise.withResolvers<never>()
  child.once("error", reject)
  return promise
}

function exitOf(child: ChildProcess): Promise<Exit> {
  const { promise, resolve } = Promise.withResolvers<Exit>()
  child.once("exit", (code, signal) => resolve({ code, signal }))
  return promise
}

/** The pipes to a program. If `errors` is undefined, standard error goes to the output. */
interface Pipes {
  output: Pipe
  errors?: Pipe
  input?: Pipe
}

/** Opens all requested pipes or none. Throws `PipeError` if a pipe cannot be created. */
async function openPipes(wanted: { errors: boolean; input: boolean }): Promise<Pipes> {
  const pipes: Pipes = { output: await openPipe() }
  try {
    if (wanted.errors) pipes.errors = await openPipe()
    if (wanted.input) pipes.input = await openInputPipe()
    return pipes
  } catch (error) {
    for (const end of [...ownEnds(pipes), ...childEnds(pipes)]) closeSync(end)
    throw error
  }
}

function ownEnds({ output, errors, input }: Pipes): number[] {
  return [output.read, errors?.read, input?.write].filter((end) => end !== undefined)
}

/** Returns the descriptors that only the program uses. This process closes them after the start. */
function childEnds({ output, errors, input }: Pipes): number[] {
  return [output.write, errors?.write, input?.read].filter((end) => end !== undefined)
}

/** The output of a program, which this process reads. */
interface ProcessOutput {
  /** Resolves when no process holds the output open, or when reading was stopped. */
  readonly closed: Promise<void>
  open(): boolean
  /** Stops reading. */
  stop(): void
  unref(): void
}

/**
 * Reads to the end into one reused buffer, because with a new buffer for each chunk, a fast program would cost 80 MB of
 * memory.
 */
function readOutput(descriptor: number, onOutput: (bytes: Uint8Array) => void, paced = false): ProcessOutput {
  const { promise: closed, resolve } = Promise.withResolvers<void>()
  const socket = new Socket({
    fd: descriptor,
    readable: true,
    writable: false,
    onread: {
      buffer: Buffer.allocUnsafeSlow(readBytes),
      callback(length, buffer) {
        const start = performance.now()
        onOutput(buffer.subarray(0, length))
        const spentMs = performance.now() - start
        if (!paced || spentMs < pacedMs) return true
        setTimeout(() => socket.resume(), spentMs * pause)
        return false
      },
    },
  })
  socket.once("end", () => socket.destroy())
  // "close" follows every error.
  socket.on("error", () => {})
  socket.once("close", () => resolve())
  return {
    closed,
    open: () => !socket.destroyed,
    stop: () => void socket.destroy(),
    unref: () => void socket.unref(),
  }
}

/** Time in milliseconds for one read of paced output, above which a pause of `pause` times this time follows. */
const pacedMs = 0.2
const pause = 3

/** Capacity of a pipe on Linux, in bytes. No read returns more. */
const readBytes = 64 * 1024

function joinOutputs(readers: readonly ProcessOutput[]): ProcessOutput {
  return {
    closed: Promise.all(readers.map((reader) => reader.closed)).then(() => {}),
    open: () => readers.some((reader) => reader.open()),
    stop: () => readers.forEach((reader) => void reader.stop()),
    unref: () => readers.forEach((reader) => void reader.unref()),
  }
}

/** Returns the standard input of a program. Takes ownership of the descriptor. `stop` discards unwritten data. */
function writeInput(descriptor: number): ProcessInput & { stop(): void } {
  const socket = new Socket({ fd: descriptor, readable: false, writable: true })
  // Each write reports its own error.
  socket.on("error", () => {})
  socket.unref()
  return {
    write(text) {
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      socket.write(text, (error) => (error ? reject(error) : resolve()))
      return promise
    },
    end: () => void socket.end(),
    stop: () => void socket.destroy(),
  }
}

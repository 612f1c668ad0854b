import { type ChildProcess, spawn } from "node:child_process"
import { randomBytes } from "node:crypto"
import { closeSync } from "node:fs"
import { Socket } from "node:net"
import { within } from "./abort.ts"
import { errorMessage, systemCode, TackleError } from "./errors.ts"
import { openPipe, type Pipe } from "./pipe.ts"
import { identifyTree, isGroupAlive, killTree, type TreeIdentity } from "./process-tree.ts"

/** How a process ended: one of the two is set. */
export interface Exit {
  code: number | null
  signal: NodeJS.Signals | null
}

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
}

/** A running program in a process group of its own, with everything it starts. */
export interface RunningProcess {
  /** For a later start that has to end what this one left. Undefined where the system cannot tell (macOS). */
  readonly identity: TreeIdentity | undefined
  /** When the program itself ended; what it started may go on. */
  readonly exited: Promise<Exit>
  /** When the output ended: nothing holds it open any more, or the process was killed. */
  readonly closed: Promise<void>
  /** True while something of its group runs or holds the output open. */
  running(): boolean
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

/** As much as a pipe holds on Linux: no read gives more. */
const readBytes = 64 * 1024

/** How long to wait for the last of the output once nothing is left that could write more. */
const lastReadMs = 100

/** Each process started here has it in its environment with a value of its own; its descendants inherit it. */
const markName = "TACKLE_PROCESS"

/** Starts a program with closed input. Throws {@link SpawnError} or `PipeError`. */
export async function startProcess(options: ProcessOptions): Promise<RunningProcess> {
  const mark = { name: markName, value: randomBytes(12).toString("hex") }
  const pipe = await openPipe()
  let child: ChildProcess & { pid: number }
  try {
    child = await spawnInto(pipe, options, { ...options.env, [mark.name]: mark.value })
  } catch (error) {
    closeSync(pipe.read)
    throw new SpawnError(options.argv[0], error)
  } finally {
    closeSync(pipe.write)
  }
  const tree = { group: child.pid, mark: `${mark.name}=${mark.value}` }
  const output = readOutput(pipe.read, options.onOutput)

  return {
    identity: identifyTree(tree),
    exited: exitOf(child),
    closed: output.closed,
    running: () => output.open() || (!options.holdsOutput && isGroupAlive(tree.group)),
    async kill() {
      await killTree(tree)
      // What was written last is still to be read; only what could not be ended holds the pipe open now.
      await within(output.closed, lastReadMs)
      output.stop()
    },
    unref() {
      child.unref()
      output.unref()
    },
  }
}

/** Throws what the system throws. */
async function spawnInto(
  pipe: Pipe,
  options: ProcessOptions,
  env: ProcessOptions["env"],
): Promise<ChildProcess & { pid: number }> {
  const [program, ...args] = options.argv
  const child = spawn(program, args, {
    cwd: options.cwd,
    env,
    detached: true,
    stdio: ["ignore", pipe.write, pipe.write, ...(options.descriptors ?? [])],
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

/** Reads into one buffer over and over: a new one for each piece would cost 80 MB of memory at high speed. */
function readOutput(descriptor: number, onOutput: ProcessOptions["onOutput"]) {
  const { promise: closed, resolve } = Promise.withResolvers<void>()
  const socket = new Socket({
    fd: descriptor,
    readable: true,
    writable: false,
    onread: {
      buffer: Buffer.allocUnsafeSlow(readBytes),
      callback(length, buffer) {
        onOutput(buffer.subarray(0, length))
        return true
      },
    },
  })
  socket.once("end", () => socket.destroy())
  // A pipe that cannot be read has nothing more to tell: "close" follows.
  socket.on("error", () => {})
  socket.once("close", () => resolve())
  return {
    closed,
    open: () => !socket.destroyed,
    stop: () => socket.destroy(),
    unref: () => socket.unref(),
  }
}

import { execFile } from "node:child_process"
import { closeSync, constants, mkdtempSync, openSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { errorMessage, TackleError } from "./errors.ts"

/** The two ends of a pipe, as descriptors that children do not inherit by themselves. Whoever takes it closes both. */
export interface Pipe {
  /** Of {@link openPipe}: does not block, reading an empty pipe answers EAGAIN. */
  readonly read: number
  readonly write: number
}

/** The system would not make a pipe: no `mkfifo`, or a temporary directory that cannot be written. */
export class PipeError extends TackleError {
  constructor(cause: unknown) {
    super(
      `No pipe could be made in ${tmpdir()} (${errorMessage(cause)}). ` +
        "Commands need `mkfifo` and a temporary directory that can be written; TMPDIR names another one.",
      { code: "pipe.unavailable", recoverable: false, cause },
    )
  }
}

/** One `mkfifo` takes about 4 ms, whether it makes one or eight. What is over waits, open, for the next calls. */
const batchSize = 8

const makeFifos = promisify(execFile)
const ready: Pipe[] = []
let making: Promise<void> | undefined

/**
 * A real pipe. What Node itself gives a child is a socket: `> /dev/stderr` fails on it, both outputs cannot share one,
 * and reading it costs half as much time again. Node has no call for pipe(2), but a named pipe that was opened at both
 * ends and unlinked is the same thing. Throws {@link PipeError}.
 */
export async function openPipe(): Promise<Pipe> {
  for (;;) {
    const pipe = ready.pop()
    if (pipe) return pipe
    await makePipesOnce()
  }
}

/** Says that a program will be started soon, so that it need not wait for its pipe. Why none can be made is told by then. */
export function preparePipes(): void {
  if (ready.length === 0) makePipesOnce().catch(() => {})
}

/**
 * A pipe for what a child is to read. Its end waits for more, as programs expect; ours never blocks. Made for itself:
 * it is seldom wanted. Throws {@link PipeError}.
 */
export async function openInputPipe(): Promise<Pipe> {
  return await inOwnDirectory(async (directory) => {
    const path = join(directory, "in")
    await makeFifos("mkfifo", ["-m", "600", path], { cwd: "/" })
    return openForChild(path)
  })
}

/** An end can be opened without waiting only while the other one is there, so a third holds the place. */
function openForChild(path: string): Pipe {
  const holder = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW)
  try {
    const write = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW)
    try {
      return { read: openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW), write }
    } catch (error) {
      closeSync(write)
      throw error
    }
  } finally {
    closeSync(holder)
  }
}

function makePipesOnce(): Promise<void> {
  making ??= makePipes().finally(() => {
    making = undefined
  })
  return making
}

async function makePipes(): Promise<void> {
  await inOwnDirectory(async (directory) => {
    const paths = Array.from({ length: batchSize }, (_, index) => join(directory, String(index)))
    await makeFifos("mkfifo", ["-m", "600", ...paths], { cwd: "/" })
    for (const path of paths) ready.push(openBothEnds(path))
  })
}

/** Named pipes stand for a moment, in a directory where nobody else can put anything. */
async function inOwnDirectory<T>(make: (directory: string) => Promise<T>): Promise<T> {
  let directory: string | undefined
  try {
    directory = mkdtempSync(join(tmpdir(), "tackle-pipes-"))
    return await make(directory)
  } catch (error) {
    throw new PipeError(error)
  } finally {
    if (directory !== undefined) rmSync(directory, { recursive: true, force: true })
  }
}

/** The reading end first: without a reader the writing end would wait for one. */
function openBothEnds(path: string): Pipe {
  const read = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW)
  try {
    return { read, write: openSync(path, constants.O_WRONLY | constants.O_NOFOLLOW) }
  } catch (error) {
    closeSync(read)
    throw error
  }
}

import { execFile } from "node:child_process"
import { closeSync, constants, mkdtempSync, openSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { errorMessage, systemCode, TackleError } from "./errors.ts"
import { isRecord } from "./json.ts"

/** The descriptors of a pipe. Child processes do not inherit them by default. The caller must close both. */
export interface Pipe {
  /**
   * Descriptor of the read end. {@link openPipe} makes it non-blocking, so reading an empty pipe fails with EAGAIN.
   */
  readonly read: number
  readonly write: number
}

/**
 * Thrown when a pipe cannot be created, for example because `mkfifo` is missing, the temporary directory cannot be
 * written, or a limit is reached. The message names the cause.
 */
export class PipeError extends TackleError {
  constructor(cause: unknown) {
    super(`To start programs, Tackle creates pipes in ${tmpdir()}. ${reasonAndAdvice(cause)}`, {
      code: "pipe.unavailable",
      recoverable: false,
      cause,
    })
  }
}

function reasonAndAdvice(cause: unknown): string {
  const code = systemCode(cause)
  const { syscall, stderr } = isRecord(cause) ? cause : {}
  const isStart = typeof syscall === "string" && syscall.startsWith("spawn")
  if (code === "EMFILE")
    return "Too many files are open. Close other sessions, or raise the limit with `ulimit -n`."
  if (code === "ENFILE") return "Too many files are open on this machine. End other programs."
  if (isStart && code === "ENOENT")
    return "The program `mkfifo` was not found. Install it (it is part of coreutils), or add its directory to PATH."
  if (isStart) return `The program \`mkfifo\` could not be started: ${errorMessage(cause)}.`
  const reason = typeof stderr === "string" && stderr.trim() !== "" ? stderr.trim() : errorMessage(cause)
  return `A pipe could not be created: ${reason}. Set TMPDIR to a directory that is writable and has free space.`
}

/**
 * Number of pipes to create together. Several are created because one `mkfifo` takes about 4 ms, whether it creates one
 * pipe or eight. Unused pipes stay open for later calls.
 */
const batchSize = 8

const ready: Pipe[] = []
let making: Promise<void> | undefined

/**
 * Opens a pipe for the output of a child process. Throws {@link PipeError} if the pipe cannot be created.
 *
 * Node connects children through sockets: `> /dev/stderr` fails on a socket, standard output and standard error cannot
 * share a socket, and reading takes 50% longer. Node has no pipe(2), but a named pipe that is opened at both ends and
 * then unlinked is equivalent.
 */
export async function openPipe(): Promise<Pipe> {
  for (;;) {
    const pipe = ready.pop()
    if (pipe) return pipe
    await makePipesOnce()
  }
}

/**
 * Creates pipes in advance for a program that is about to start. Ignores errors, because {@link openPipe} reports them.
 */
export function preparePipes(): void {
  if (ready.length === 0) makePipesOnce().catch(() => {})
}

/**
 * Opens a pipe for the input of a child process. The child's end blocks, and this process's end does not. Throws {@link
 * PipeError} if the pipe cannot be created.
 */
export async function openInputPipe(): Promise<Pipe> {
  return await inOwnDirectory(async (directory) => {
    const path = join(directory, "in")
    await makeFifos([path])
    return openForChild(path)
  })
}

/**
 * Opens both ends. Opening one end without blocking requires that the other end is open, so a third descriptor holds
 * the pipe open until both ends are open.
 */
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

async function makeFifos(paths: readonly string[]): Promise<void> {
  await promisify(execFile)("mkfifo", ["-m", "600", ...paths], { cwd: "/" })
}

async function makePipes(): Promise<void> {
  await inOwnDirectory(async (directory) => {
    const paths = Array.from({ length: batchSize }, (_, index) => join(directory, String(index)))
    await makeFifos(paths)
    for (const path of paths) ready.push(openBothEnds(path))
  })
}

/**
 * Calls `make` with a new directory that only this user can write, and removes the directory afterwards. Throws {@link
 * PipeError} if `make` or the creation of the directory fails.
 */
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

/** Opens the reading end first, because opening the writing end blocks until there is a reader. */
function openBothEnds(path: string): Pipe {
  const read = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW)
  try {
    return { read, write: openSync(path, constants.O_WRONLY | constants.O_NOFOLLOW) }
  } catch (error) {
    closeSync(read)
    throw error
  }
}

import { closeSync, constants, fstatSync, readSync, type Stats, statSync } from "node:fs"
import { setImmediate } from "node:timers/promises"
import { throwIfAborted } from "../util/abort.ts"
import { errorMessage, systemCode, TackleError } from "../util/errors.ts"
import { checkIdentity, type FileIdentity, openPinned } from "../util/pinned-path.ts"
import { FileAccessError, notFound, SpecialFileError } from "./file-errors.ts"
import { showName } from "./show-name.ts"

/**
 * A regular file that is open for reading. All operations are synchronous, because they take only microseconds. In the
 * thread pool, they would take ten times as long. {@link readChunks} lets the event loop run between chunks.
 */
export interface OpenFile {
  stat(): Stats
  /** Returns the number of bytes read, or 0 at the end of the file. */
  read(buffer: Buffer, from: number, length: number, position: number): number
  close(): void
}

/**
 * Size of a chunk in bytes. It is large enough to make the cost of system calls negligible, and small enough to abort
 * quickly.
 */
const chunkBytes = 256 * 1024

/**
 * Returns the stats of a path. Follows links. If the path does not exist, throws a `PathNotFoundError` that lists
 * similar names and calls the path a `kind`. Throws {@link SpecialFileError} for anything except a file or directory,
 * and {@link FileAccessError} for system errors.
 */
export async function statPath(path: string, kind: "File" | "Path"): Promise<Stats> {
  const found = await orTranslated(path, kind, () => statSync(path))
  if (!found.isFile() && !found.isDirectory()) throw new SpecialFileError(showName(path), kindName(found))
  return found
}

/**
 * Opens a regular file for reading. The caller must close it. `real` is the resolved path for which permission was
 * granted. Refuses to follow a link to a different target. If `leave` is given, also refuses a file that has replaced
 * the original at the same path since permission was granted, for example by a rename. Never blocks on a pipe. Throws
 * `MovedPathError` if the path now leads to a different file, and errors from {@link statPath}.
 */
export async function openFile(
  path: string,
  real: string,
  leave?: { identity: FileIdentity | undefined },
): Promise<OpenFile> {
  const found = await statPath(real, "File")
  if (!found.isFile()) throw new SpecialFileError(showName(path), kindName(found))
  const flags = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY
  const descriptor = await orTranslated(path, "File", () => openPinned(real, flags))
  const file: OpenFile = {
    stat: () => fstatSync(descriptor),
    read: (buffer, from, length, position) => readSync(descriptor, buffer, from, length, position),
    close: () => closeSync(descriptor),
  }
  try {
    const opened = file.stat()
    if (!opened.isFile()) throw new SpecialFileError(showName(path), kindName(opened))
    if (leave) checkIdentity(descriptor, real, leave.identity)
    return file
  } catch (error) {
    file.close()
    throw error
  }
}

/** Returns the first `bytes` bytes of an open file, or all bytes of a shorter file. */
export function readStart(file: OpenFile, bytes: number): Buffer {
  const buffer = Buffer.alloc(bytes)
  let filled = 0
  while (filled < bytes) {
    const count = file.read(buffer, filled, bytes - filled, filled)
    if (count === 0) break
    filled += count
  }
  return buffer.subarray(0, filled)
}

/** Yields the whole file. A chunk is valid only until the next chunk is requested, because its memory is reused. */
export async function* readChunks(file: OpenFile, signal: AbortSignal): AsyncGenerator<Buffer> {
  const buffer = Buffer.allocUnsafe(Math.min(chunkBytes, file.stat().size + 1))
  for (let position = 0; ; ) {
    throwIfAborted(signal)
    const count = file.read(buffer, 0, buffer.length, position)
    if (count === 0) return
    position += count
    yield buffer.subarray(0, count)
    if (count === chunkBytes) await setImmediate()
  }
}

async function orTranslated<T>(path: string, kind: "File" | "Path", work: () => T): Promise<T> {
  try {
    return work()
  } catch (error) {
    const code = systemCode(error)
    if (code === "ENOENT" || code === "ENOTDIR") throw await notFound(path, kind)
    if (TackleError.isInstance(error) || code === undefined) throw error
    throw new FileAccessError(`Cannot read ${showName(path)}: ${errorMessage(error)}.`, error)
  }
}

function kindName(found: Stats): string {
  if (found.isDirectory()) return "directory"
  if (found.isFIFO()) return "named pipe"
  if (found.isSocket()) return "socket"
  return "device"
}

/**
 * Returns the permission patterns for a file: its path and, if the path contains links to another location, its
 * resolved path. Both patterns must be allowed, because the permission check resolves links at a different time.
 */
export function pinnedPatterns(path: string, real: string): string[] {
  return real === path ? [path] : [path, real]
}

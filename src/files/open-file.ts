import { closeSync, constants, fstatSync, readSync, type Stats, statSync } from "node:fs"
import { setImmediate } from "node:timers/promises"
import { throwIfAborted } from "../util/abort.ts"
import { errorMessage, systemCode, TackleError } from "../util/errors.ts"
import { checkIdentity, type FileIdentity, openPinned } from "../util/pinned-path.ts"
import { FileAccessError, SpecialFileError } from "./file-errors.ts"
import { notFound } from "./not-found.ts"
import { showName } from "./show-name.ts"

/**
 * A regular file, open for reading. Its steps are synchronous: each takes microseconds, while a way through the thread
 * pool takes ten times as long as reading a source file. Between chunks the event loop has its turn.
 */
export interface OpenFile {
  stat(): Stats
  /** Returns the number of bytes; 0 at the end of the file. */
  read(buffer: Buffer, from: number, length: number, position: number): number
  close(): void
}

/** 256 KB: large enough that calls cost nothing beside the bytes, small enough to answer an abort at once. */
const chunkBytes = 256 * 1024

/**
 * What is at the path, links followed. Throws `PathNotFoundError` with near names, {@link SpecialFileError} for what is
 * neither file nor directory, {@link FileAccessError} when the system refuses.
 */
export async function statPath(path: string, kind: "File" | "Path"): Promise<Stats> {
  const found = await orTranslated(path, kind, () => statSync(path))
  if (!found.isFile() && !found.isDirectory()) throw new SpecialFileError(showName(path), kindName(found))
  return found
}

/**
 * Opens a regular file for reading; the caller closes it. `real` is where its path led when leave was given for it:
 * what it leads to since is refused, and with `leave` so is another file under that name: one that was asked about may
 * have been exchanged for a protected one, by its name or by a second name (a hard link). Never blocks: a pipe that
 * took the file's place since it was looked at is opened without waiting for a writer, and refused. Throws
 * `MovedPathError`, else as {@link statPath} does.
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

/** The first bytes of an open file: fewer than asked for only where the file ends. */
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

/** The whole file in order. A chunk is good until the next is asked for: its memory is used again. */
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
 * Returns the permission patterns of a file: its path and, if links lead elsewhere, its resolved path. The permission
 * check resolves links at another moment, so both must be allowed.
 */
export function pinnedPatterns(path: string, real: string): string[] {
  return real === path ? [path] : [path, real]
}

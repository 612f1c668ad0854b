import { constants, type Stats } from "node:fs"
import { type FileHandle, open, stat } from "node:fs/promises"
import { throwIfAborted } from "../../util/abort.ts"
import { errorMessage, systemCode, TackleError } from "../../util/errors.ts"
import { FileAccessError, SpecialFileError } from "./file-errors.ts"
import { notFound } from "./near-names.ts"
import { showName } from "./show-name.ts"

/** 256 KB: large enough that calls cost nothing beside the bytes, small enough to answer an abort at once. */
const chunkBytes = 256 * 1024

/**
 * What is at the path, links followed. Throws `PathNotFoundError` with near names, {@link SpecialFileError} for what is
 * neither file nor directory, {@link FileAccessError} when the system refuses.
 */
export async function statPath(path: string, kind: "File" | "Path"): Promise<Stats> {
  const found = await orTranslated(path, kind, () => stat(path))
  if (!found.isFile() && !found.isDirectory()) throw new SpecialFileError(showName(path), kindName(found))
  return found
}

/**
 * Opens a regular file for reading; the caller closes it. Never blocks: a pipe that took the file's place since it was
 * looked at is opened without waiting for a writer, and refused. Throws as {@link statPath} does.
 */
export async function openFile(path: string): Promise<FileHandle> {
  await statPath(path, "File")
  const flags = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY
  const handle = await orTranslated(path, "File", () => open(path, flags))
  try {
    const opened = await handle.stat()
    if (!opened.isFile()) throw new SpecialFileError(showName(path), kindName(opened))
    return handle
  } catch (error) {
    await handle.close()
    throw error
  }
}

/** The first bytes of an open file: fewer than asked for only where the file ends. */
export async function readStart(handle: FileHandle, bytes: number): Promise<Buffer> {
  const buffer = Buffer.alloc(bytes)
  let filled = 0
  while (filled < bytes) {
    const { bytesRead } = await handle.read(buffer, filled, bytes - filled, filled)
    if (bytesRead === 0) break
    filled += bytesRead
  }
  return buffer.subarray(0, filled)
}

/** The whole file in order. A chunk is good until the next is asked for: its memory is used again. */
export async function* readChunks(handle: FileHandle, signal: AbortSignal): AsyncGenerator<Buffer> {
  const buffer = Buffer.allocUnsafe(chunkBytes)
  for (let position = 0; ; ) {
    throwIfAborted(signal)
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, position)
    if (bytesRead === 0) return
    position += bytesRead
    yield buffer.subarray(0, bytesRead)
  }
}

async function orTranslated<T>(path: string, kind: "File" | "Path", work: () => Promise<T>): Promise<T> {
  try {
    return await work()
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

import { constants } from "node:fs"
import { access, lstat, open } from "node:fs/promises"
import { fileReason, systemCode, TackleError } from "../util/errors.ts"
import { realPath } from "../util/paths.ts"
import { FileAccessError } from "./file-errors.ts"
import { type FileStamp, type FileTracker, sameStamp, stampBytes, stampFile } from "./file-tracker.ts"
import { showName } from "./show-name.ts"

/** A file that is changed is held in memory twice: as bytes and as text. */
const maxFileBytes = 256 * 1024 * 1024

/** What stands at a path before a change. `path` as it was asked for, `real` with every link followed. */
export type FileBefore =
  | { exists: false; path: string; real: string }
  | { exists: true; path: string; real: string; bytes: Uint8Array; stamp: FileStamp }

/** Undefined where there is no file. */
export function bytesOf(before: FileBefore): Uint8Array | undefined {
  return before.exists ? before.bytes : undefined
}

/** A file that must not or cannot be changed as it is. The text says why and what to do. */
export class FileChangeError extends TackleError {
  /**
   * `unread`: this session has never seen its bytes. `changed`: they are others now. `unfit`: no such thing is changed.
   * `exists`: it would be overwritten by a new one. `missing`: there is none.
   */
  constructor(why: "unread" | "changed" | "unfit" | "exists" | "missing", message: string) {
    super(message, { code: `file.${why}`, recoverable: true })
  }
}

/** The real path behind `path`. Throws `FileAccessError` where links go in circles or a directory is closed to us. */
export function resolveTarget(path: string): string {
  try {
    return realPath(path)
  } catch (error) {
    throw accessError("resolve", path, error)
  }
}

/** Reads the file at `real`. Throws {@link FileChangeError} for anything that is neither missing nor a regular file. */
export async function readBefore(path: string, real: string): Promise<FileBefore> {
  try {
    return (await isThere(path, real))
      ? { exists: true, path, real, ...(await readWhole(path, real)) }
      : { exists: false, path, real }
  } catch (error) {
    throw TackleError.isInstance(error) ? error : accessError("read", path, error)
  }
}

/** Throws {@link FileChangeError} unless this session has seen the very bytes that are there now. */
export function assertSeen(before: FileBefore, files: FileTracker): void {
  if (!before.exists) return
  const seen = files.seen(before.real)
  if (!seen) {
    throw new FileChangeError(
      "unread",
      `${showName(before.path)} exists, but this session has not read it. Read it with the read tool first, then try again.`,
    )
  }
  if (!sameStamp(seen, before.stamp)) {
    throw new FileChangeError(
      "changed",
      `${showName(before.path)} has changed since this session last read it. Read it again, then base the change on what it says now.`,
    )
  }
}

/** Throws {@link FileChangeError} if the path leads elsewhere by now, or the bytes there are others. */
export async function assertUnchanged(before: FileBefore): Promise<void> {
  const same = resolveTarget(before.path) === before.real && (await isAsBefore(before))
  if (same) return
  throw new FileChangeError(
    "changed",
    `${showName(before.path)} was changed by someone else while this call waited for leave. Nothing was written. Read it again, then try again.`,
  )
}

/** What the system threw, as an error that the model can act on. */
export function accessError(
  verb: "resolve" | "read" | "write",
  path: string,
  error: unknown,
): FileAccessError {
  return new FileAccessError(`Cannot ${verb} ${showName(path)}: ${fileReason(error)}`, error)
}

async function isThere(path: string, real: string): Promise<boolean> {
  const stats = await lstatIfThere(real)
  if (!stats) {
    if (!(await lstatIfThere(path))?.isSymbolicLink()) return false
    throw new FileChangeError(
      "unfit",
      `${showName(path)} is a link to something that does not exist. Name the file that it should lead to.`,
    )
  }
  if (stats.isDirectory()) {
    throw new FileChangeError("unfit", `${showName(path)} is a directory. Name a file in it.`)
  }
  if (!stats.isFile()) {
    throw new FileChangeError(
      "unfit",
      `${showName(path)} is a device, pipe or socket. Only regular files can be changed.`,
    )
  }
  if (stats.size > maxFileBytes) {
    throw new FileChangeError(
      "unfit",
      `${showName(path)} has ${stats.size} bytes; files over ${maxFileBytes} bytes cannot be changed by this tool. Use bash.`,
    )
  }
  await assertWritable(path, real)
  return true
}

/** Replacing a file needs no right to write into it: without this check a file set to read-only would not be safe. */
async function assertWritable(path: string, real: string): Promise<void> {
  try {
    await access(real, constants.W_OK)
  } catch (error) {
    throw accessError("write", path, error)
  }
}

async function readWhole(path: string, real: string): Promise<{ bytes: Uint8Array; stamp: FileStamp }> {
  // Not through a link, and not waiting for a writer, should something else have taken the file's place just now.
  const handle = await open(real, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    const stats = await handle.stat()
    if (!stats.isFile()) throw new FileChangeError("unfit", `${showName(path)} is no regular file.`)
    const bytes = await handle.readFile()
    return { bytes, stamp: stampBytes(bytes, stats.mtimeMs) }
  } finally {
    await handle.close()
  }
}

async function isAsBefore(before: FileBefore): Promise<boolean> {
  try {
    const stats = await lstatIfThere(before.real)
    if (!stats || !before.exists) return !stats && !before.exists
    return stats.isFile() && sameStamp(await stampFile(before.real), before.stamp)
  } catch (error) {
    throw accessError("read", before.path, error)
  }
}

async function lstatIfThere(path: string) {
  try {
    return await lstat(path)
  } catch (error) {
    if (systemCode(error) === "ENOENT") return undefined
    throw error
  }
}

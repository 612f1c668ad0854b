import { constants } from "node:fs"
import { access, lstat, open } from "node:fs/promises"
import { basename } from "node:path"
import { fileReason, systemCode, TackleError } from "../util/errors.ts"
import { realPath } from "../util/paths.ts"
import { FileAccessError } from "./file-errors.ts"
import { fileKind, sampleBytes } from "./file-kind.ts"
import { type FileStamp, type FileTracker, sameStamp, stampBytes, stampFile } from "./file-tracker.ts"
import { showName } from "./show-name.ts"
import { type DecodedText, decodeText } from "./text-encoding.ts"

/** Maximum size in bytes of a file that can be changed. Its content is in memory twice: as bytes and as text. */
const maxFileBytes = 256 * 1024 * 1024

/**
 * State of a path before a change. `path` is the path as the caller gave it, and `real` is the path with all links
 * resolved.
 */
export type FileBefore =
  | { exists: false; path: string; real: string }
  | { exists: true; path: string; real: string; bytes: Uint8Array; stamp: FileStamp }

/** Returns the bytes of the file, or undefined if it does not exist. */
export function bytesOf(before: FileBefore): Uint8Array | undefined {
  return before.exists ? before.bytes : undefined
}

/** Thrown if a file must not or cannot be changed. The message explains the reason and the next step. */
export class FileChangeError extends TackleError {
  /**
   * `unread`: the session has not read the file. `changed`: the content has changed since the session last read it.
   * `unfit`: a file of this kind or size cannot be changed. `exists`: a new file would overwrite an existing file.
   * `missing`: the file does not exist.
   */
  constructor(why: "unread" | "changed" | "unfit" | "exists" | "missing", message: string) {
    super(message, { code: `file.${why}`, recoverable: true })
  }
}

/** Resolves all links of a path. Throws `FileAccessError` for link loops and inaccessible directories. */
export function resolveTarget(path: string): string {
  try {
    return realPath(path)
  } catch (error) {
    throw accessError("resolve", path, error)
  }
}

/**
 * Reads the file at `real`. Throws {@link FileChangeError} if `path` is a broken link, or leads to anything except a
 * regular file of at most {@link maxFileBytes}. Throws `FileAccessError` if the file cannot be read or is read-only.
 */
export async function readBefore(path: string, real: string): Promise<FileBefore> {
  try {
    return (await isThere(path, real))
      ? { exists: true, path, real, ...(await readWhole(path, real)) }
      : { exists: false, path, real }
  } catch (error) {
    throw TackleError.isInstance(error) ? error : accessError("read", path, error)
  }
}

/** Throws {@link FileChangeError} if the file exists and the session has not seen its current content. */
export function assertSeen(before: FileBefore, files: FileTracker): void {
  if (!before.exists) return
  const seen = files.seen(before.real)
  if (!seen) {
    const { kind } = fileKind(basename(before.path), Buffer.from(before.bytes.subarray(0, sampleBytes)))
    const next =
      kind === "binary"
        ? "It is a binary file, which the read tool cannot read. To replace it, first delete it with a command."
        : "First read it with the read tool, then try again."
    throw new FileChangeError(
      "unread",
      `${showName(before.path)} exists, but this session has not read it. ${next}`,
    )
  }
  if (!sameStamp(seen, before.stamp)) {
    throw new FileChangeError(
      "changed",
      `${showName(before.path)} has changed since this session last read it. Read it again, then base your change on its current content.`,
    )
  }
}

/** Throws {@link FileChangeError} if the path now resolves to a different file or the content has changed. */
export async function assertUnchanged(before: FileBefore): Promise<void> {
  const same = resolveTarget(before.path) === before.real && (await isAsBefore(before))
  if (same) return
  throw new FileChangeError(
    "changed",
    `${showName(before.path)} changed after this call read it. Nothing was written. Read it again, then try again.`,
  )
}

/**
 * Decodes the file. Throws {@link FileChangeError} if it is binary or has an unknown encoding, because the change would
 * replace characters that it does not name. `advice` tells the model what to do instead.
 */
export function decodeBefore(
  { bytes }: Extract<FileBefore, { exists: true }>,
  title: string,
  advice: string,
): Extract<DecodedText, { kind: "text" }> {
  const decoded = decodeText(bytes)
  if (decoded.kind === "text") return decoded
  const reason =
    decoded.kind === "binary" ? "is a binary file" : "is neither UTF-8 nor UTF-16 with a byte order mark"
  throw new FileChangeError("unfit", `${title} ${reason}. Nothing was changed. ${advice}`)
}

/** Translates a system error into an error that the model can act on. */
export function accessError(
  verb: "resolve" | "read" | "write",
  path: string,
  error: unknown,
): FileAccessError {
  return new FileAccessError(`Cannot ${verb} ${showName(path)}: ${fileReason(error)}.`, error)
}

async function isThere(path: string, real: string): Promise<boolean> {
  const stats = await lstatIfThere(real)
  if (!stats) {
    if (!(await lstatIfThere(path))?.isSymbolicLink()) return false
    throw new FileChangeError("unfit", `${showName(path)} is a broken link. Use the path of its target.`)
  }
  if (stats.isDirectory()) {
    throw new FileChangeError("unfit", `${showName(path)} is a directory. Use the path of a file in it.`)
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
      `${showName(path)} is ${stats.size} bytes. This tool cannot change files larger than ${maxFileBytes} bytes. Use the bash tool.`,
    )
  }
  await assertWritable(path, real)
  return true
}

/**
 * Throws `FileAccessError` if the file is read-only. Renaming over a file does not require write permission, so this
 * check protects the file.
 */
async function assertWritable(path: string, real: string): Promise<void> {
  try {
    await access(real, constants.W_OK)
  } catch (error) {
    throw accessError("write", path, error)
  }
}

async function readWhole(path: string, real: string): Promise<{ bytes: Uint8Array; stamp: FileStamp }> {
  // These flags avoid following a link or blocking on a pipe that has just replaced the file.
  const handle = await open(real, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    const stats = await handle.stat()
    if (!stats.isFile())
      throw new FileChangeError(
        "unfit",
        `${showName(path)} is not a regular file. Only regular files can be changed.`,
      )
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

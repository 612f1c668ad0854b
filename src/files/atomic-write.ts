import { type FileHandle, lstat, open, rename, rm } from "node:fs/promises"
import { basename, dirname, join } from "node:path"
import { systemCode } from "../util/errors.ts"
import { temporaryName } from "../util/file-system.ts"
import { openPinnedDirectory } from "../util/pinned-path.ts"
import { type FileStamp, stampBytes } from "./file-tracker.ts"
import { removeTemporary, type TrackTemporary } from "./temporary-files.ts"

/**
 * Writes a file atomically: readers see either the old or the new content, even after a crash. Creates parent
 * directories, and keeps the mode and, if permitted, the owner of an existing file. `path` must be resolved; a link at
 * its end is replaced. Calls `check` directly before the change, and returns the stamp of the new file. Throws
 * `MovedPathError` if the path now leads elsewhere, the system error if the file cannot be written, and errors from
 * `check`. After an error, the file is unchanged, but new parent directories may remain.
 */
export async function writeAtomic(
  path: string,
  bytes: Uint8Array,
  trackTemporary: TrackTemporary,
  check = async () => {},
): Promise<FileStamp> {
  const directory = openPinnedDirectory(dirname(path))
  const name = temporaryName()
  const temporary = directory.entry(name)
  const place = directory.entry(basename(path))
  try {
    const record = trackTemporary({ path: join(dirname(path), name) })
    try {
      const stamp = await stageFile(temporary, bytes, place)
      await check()
      await rename(temporary, place)
      record.done()
      return stamp
    } catch (error) {
      await removeTemporary(temporary, record)
      throw error
    }
  } finally {
    directory.close()
  }
}

/**
 * Writes and syncs the new file `temporary`. If a file exists at `like`, the new file gets its mode and, if permitted,
 * its owner. The caller renames the file to its final path. If writing fails, throws the system error and leaves no
 * file behind.
 */
export async function stageFile(temporary: string, bytes: Uint8Array, like: string): Promise<FileStamp> {
  const old = await statIfThere(like)
  // No other user may read a copy of a private file before the copy has that file's mode.
  const handle = await open(temporary, "wx", old ? 0o600 : 0o666)
  try {
    const { mtimeMs } = await fill(handle, bytes, old)
    return stampBytes(bytes, mtimeMs)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
}

interface Ownership {
  mode: number
  uid: number
  gid: number
}

async function statIfThere(path: string): Promise<Ownership | undefined> {
  try {
    const found = await lstat(path)
    return found.isFile() ? found : undefined
  } catch (error) {
    if (systemCode(error) === "ENOENT") return undefined
    throw error
  }
}

async function fill(
  handle: FileHandle,
  bytes: Uint8Array,
  old: Ownership | undefined,
): Promise<{ mtimeMs: number }> {
  try {
    await handle.writeFile(bytes)
    if (old) await keepOwnership(handle, old)
    await handle.sync()
    return await handle.stat()
  } finally {
    await handle.close()
  }
}

async function keepOwnership(handle: FileHandle, old: Ownership): Promise<void> {
  const own = await handle.stat()
  if (own.uid !== old.uid || own.gid !== old.gid) {
    try {
      await handle.chown(old.uid, old.gid)
    } catch (error) {
      // Only root can change the owner. The user can still replace the file.
      if (systemCode(error) !== "EPERM") throw error
    }
  }
  // Runs after chown, which clears the set-id bits.
  await handle.chmod(old.mode & 0o7777)
}

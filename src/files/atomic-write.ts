import { type FileHandle, lstat, open, rename, rm } from "node:fs/promises"
import { basename, dirname, join } from "node:path"
import { systemCode } from "../util/errors.ts"
import { openPinnedDirectory } from "../util/pinned-path.ts"
import { type FileStamp, stampBytes } from "./file-tracker.ts"
import { removeTemporary, type TrackTemporary, temporaryName } from "./temporary-files.ts"

/**
 * Puts `bytes` at `path` in one move: readers see the old file or the new one, never a half, also when the process or
 * the machine dies. Parents are made. An existing file keeps its mode and, where the system lets us, its owner; a new
 * one gets 0666 less the umask. `path` must be resolved: links that were put into it since are not followed, one at its
 * end is replaced, and another hard link to the file keeps the old bytes. The file that stands beside it meanwhile is
 * told to `note`. Returns the stamp of what was written; throws `MovedPathError` and what the system throws, with nothing
 * changed but perhaps new parents.
 */
export async function writeAtomic(
  path: string,
  bytes: Uint8Array,
  trackTemporary: TrackTemporary,
): Promise<FileStamp> {
  const directory = openPinnedDirectory(dirname(path))
  const name = temporaryName()
  const temporary = directory.entry(name)
  const place = directory.entry(basename(path))
  try {
    const record = trackTemporary({ path: join(dirname(path), name) })
    try {
      const stamp = await stageFile(temporary, bytes, place)
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
 * Writes `bytes` to the new file `temporary`, and onto the disk. It has the mode and owner of the file at `like`, if there
 * is one. To put it in its place, rename it. Throws what the system throws, with nothing left behind.
 */
export async function stageFile(temporary: string, bytes: Uint8Array, like: string): Promise<FileStamp> {
  const old = await statIfThere(like)
  // Nobody else may look into the copy of a private file before it has the file's own mode.
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
      // Only root may give files away. Whoever may write here may still replace the file by one of their own.
      if (systemCode(error) !== "EPERM") throw error
    }
  }
  // After the change of owner, which clears the set-id bits.
  await handle.chmod(old.mode & 0o7777)
}

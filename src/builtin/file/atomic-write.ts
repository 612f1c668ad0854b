import { randomBytes } from "node:crypto"
import { type FileHandle, lstat, open, rename, rm } from "node:fs/promises"
import { basename, dirname, join } from "node:path"
import type { FileStamp } from "../../tool/context.ts"
import { stampBytes } from "../../tool/ledger.ts"
import { systemCode } from "../../util/errors.ts"
import { openPinnedDirectory } from "../../util/pinned-path.ts"

/**
 * Puts `bytes` at `path` in one move: readers see the old file or the new one, never a half, also when the process or
 * the machine dies. Parents are made. An existing file keeps its mode and, where the system lets us, its owner; a new
 * one gets 0666 less the umask. `path` must be resolved: links that were put into it since are not followed, one at its
 * end is replaced, and another hard link to the file keeps the old bytes. Returns the stamp of what was written; throws
 * `MovedPathError` and what the system throws, with nothing changed but perhaps new parents.
 */
export async function writeAtomic(path: string, bytes: Uint8Array): Promise<FileStamp> {
  const directory = openPinnedDirectory(dirname(path))
  try {
    const place = directory.entry(basename(path))
    const staged = await stageFile(place, bytes)
    try {
      await rename(staged.temporary, place)
      return staged.stamp
    } catch (error) {
      await rm(staged.temporary, { force: true })
      throw error
    }
  } finally {
    directory.close()
  }
}

/** A whole file beside the place that it is meant for. To put it there, rename it. */
export interface StagedFile {
  temporary: string
  stamp: FileStamp
}

/**
 * Writes `bytes` to a new file in the directory of `path`, which must be there, and onto the disk. It has the mode and
 * owner of the file at `like`, if there is one. Throws what the system throws, with nothing left behind.
 */
export async function stageFile(path: string, bytes: Uint8Array, like = path): Promise<StagedFile> {
  const old = await statIfThere(like)
  const temporary = temporaryBeside(path)
  // Nobody else may look into the copy of a private file before it has the file's own mode.
  const handle = await open(temporary, "wx", old ? 0o600 : 0o666)
  try {
    const { mtimeMs } = await fill(handle, bytes, old)
    return { temporary, stamp: stampBytes(bytes, mtimeMs) }
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
}

/** A name in the same directory that nothing has. */
export function temporaryBeside(path: string): string {
  return join(dirname(path), `.tackle-${randomBytes(6).toString("hex")}.tmp`)
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

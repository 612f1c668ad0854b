import { copyFile, link, rename, rm, rmdir } from "node:fs/promises"
import { basename, dirname, join } from "node:path"
import { errorMessage, systemCode, TackleError } from "../util/errors.ts"
import { MovedPathError, openPinnedDirectory, type PinnedDirectory } from "../util/pinned-path.ts"
import { stageFile } from "./atomic-write.ts"
import type { FileStamp } from "./file-tracker.ts"
import { showName } from "./show-name.ts"
import {
  removeTemporary,
  type TrackedTemporary,
  type TrackTemporary,
  temporaryName,
} from "./temporary-files.ts"

/** The planned state of one file. `path` is resolved. */
export interface FileStep {
  path: string
  /** True if the file exists now. */
  exists: boolean
  /** Undefined to delete the file. */
  bytes: Uint8Array | undefined
  /** The file whose mode and owner the new file gets. Default: the one at `path`. */
  like?: string
}

/** Some files could be neither changed nor restored. The message names them and the backups of their old content. */
export class RollbackError extends TackleError {
  constructor(message: string, cause: unknown) {
    super(message, { code: "file.rollback", recoverable: true, cause })
  }
}

/**
 * Makes all changes or none. Writes and syncs all new content to temporary files first, so that a full disk or a missing
 * permission fails early; then renames them, and deletes files last. If one change fails, reverts those before it: same
 * content, mode and times, same inodes; removes new directories. Holds the directories of the resolved paths open
 * throughout, so that links inserted meanwhile have no effect. Returns the stamps of the written files by path. Throws
 * `MovedPathError` with nothing changed, system errors, and {@link RollbackError} if reverting fails too. Reports every
 * temporary file to `trackTemporary`.
 */
export async function commitFiles(
  steps: readonly FileStep[],
  trackTemporary: TrackTemporary,
): Promise<Map<string, FileStamp>> {
  const staged = new Map<FileStep, StagedFile>()
  const temporary = createTemporaryFiles(trackTemporary)
  const undo: Undo[] = []
  const needed = new Set<string>()
  const directories = openDirectories()
  try {
    for (const step of steps) {
      const place = directories.place(step.path, undo)
      if (step.bytes === undefined) continue
      const like = step.like === undefined ? place : directories.place(step.like, undo)
      const beside = temporary.beside(place)
      staged.set(step, { beside, stamp: await stageFile(beside.now, step.bytes, like.now) })
    }
    for (const [{ path, exists }, { beside }] of staged) {
      const place = directories.place(path, undo)
      if (exists) await replace(place, beside, { undo, temporary })
      else await put(place, beside, undo)
    }
    for (const { path, bytes } of steps)
      if (bytes === undefined) await remove(directories.place(path, undo), { undo, temporary })
    return new Map([...staged].map(([{ path }, { stamp }]) => [path, stamp]))
  } catch (error) {
    const failures = await putBack(undo)
    if (failures.length === 0) throw error
    for (const { backup } of failures) if (backup !== undefined) needed.add(backup.now)
    throw rollbackError(failures, error)
  } finally {
    try {
      await temporary.remove(needed)
    } finally {
      directories.close()
    }
  }
}

/** A complete temporary file beside its destination. */
interface StagedFile {
  beside: HeldPath
  stamp: FileStamp
}

/** Creates the temporary files of a change. */
function createTemporaryFiles(trackTemporary: TrackTemporary) {
  const noted: { file: HeldPath; record: TrackedTemporary }[] = []
  return {
    /** Returns a new name in the same directory. */
    beside({ named, now }: HeldPath, { backup = false } = {}): HeldPath {
      const name = temporaryName()
      const file = { named: join(dirname(named), name), now: join(dirname(now), name) }
      noted.push({ file, record: trackTemporary({ path: file.named, backupOf: backup ? named : undefined }) })
      return file
    },
    /**
     * Removes all except those still needed, which belong to the user from now on. A failure does not fail the
     * change.
     */
    async remove(needed: ReadonlySet<string>): Promise<void> {
      for (const { file, record } of noted) {
        if (needed.has(file.now)) record.done()
        else await removeTemporary(file.now, record)
      }
    },
  }
}

type TemporaryFiles = ReturnType<typeof createTemporaryFiles>

/** A file by two paths: one for messages, and one through its open directory. */
interface HeldPath {
  named: string
  now: string
}

/** A step that reverts one change. */
interface Undo {
  what: string
  /** The old content until it is restored. */
  backup?: HeldPath
  run: () => Promise<void>
}

/** Opens each directory once, and creates it if it does not exist. */
function openDirectories() {
  const open = new Map<string, PinnedDirectory>()
  return {
    place(path: string, undo: Undo[]): HeldPath {
      const directory = open.get(dirname(path)) ?? openPinnedDirectory(dirname(path))
      if (!open.has(dirname(path)))
        for (const made of directory.made)
          undo.push({ what: `the new directory ${showName(made)}`, run: () => removeEmpty(made) })
      open.set(dirname(path), directory)
      return { named: path, now: directory.entry(basename(path)) }
    },
    close() {
      for (const directory of open.values()) directory.close()
    },
  }
}

/** Keeps a directory that is not empty or has moved. */
async function removeEmpty(path: string): Promise<void> {
  try {
    const parent = openPinnedDirectory(dirname(path), { make: false })
    try {
      await rmdir(parent.entry(basename(path)))
    } finally {
      parent.close()
    }
  } catch (error) {
    const code = systemCode(error) ?? ""
    if (error instanceof MovedPathError || ["ENOTEMPTY", "EEXIST", "ENOENT", "ENOTDIR"].includes(code)) return
    throw error
  }
}

async function replace(
  place: HeldPath,
  { now: next }: HeldPath,
  { undo, temporary }: { undo: Undo[]; temporary: TemporaryFiles },
): Promise<void> {
  const backup = temporary.beside(place, { backup: true })
  await keep(place.now, backup.now)
  undo.push({ what: showName(place.named), backup, run: () => rename(backup.now, place.now) })
  await rename(next, place.now)
}

/** Creates a hard link, so that the file always has a name. Copies the file if the file system has no hard links. */
async function keep(path: string, backup: string): Promise<void> {
  try {
    await link(path, backup)
  } catch (error) {
    const code = systemCode(error)
    if (code !== "EPERM" && code !== "ENOTSUP" && code !== "ENOSYS" && code !== "EMLINK") throw error
    await copyFile(path, backup)
  }
}

async function put({ named, now }: HeldPath, { now: next }: HeldPath, undo: Undo[]): Promise<void> {
  await rename(next, now)
  undo.push({ what: showName(named), run: () => rm(now, { force: true }) })
}

async function remove(
  place: HeldPath,
  { undo, temporary }: { undo: Undo[]; temporary: TemporaryFiles },
): Promise<void> {
  const backup = temporary.beside(place, { backup: true })
  await rename(place.now, backup.now)
  undo.push({ what: showName(place.named), backup, run: () => rename(backup.now, place.now) })
}

interface Failure {
  what: string
  backup: HeldPath | undefined
  error: unknown
}

/** Reverts all changes, latest first. A failure does not stop the others. */
async function putBack(undo: readonly Undo[]): Promise<Failure[]> {
  const failures: Failure[] = []
  for (const { what, backup, run } of undo.toReversed()) {
    try {
      await run()
    } catch (error) {
      failures.push({ what, backup, error })
    }
  }
  return failures
}

function rollbackError(failures: readonly Failure[], cause: unknown): RollbackError {
  const named = failures.map(({ what, backup, error }) => {
    const where = backup === undefined ? "" : `, whose old content is in ${showName(backup.named)}`
    return `${what}${where} (${errorMessage(error)})`
  })
  return new RollbackError(
    `${errorMessage(cause)}. Restoring the changed files failed for: ${named.join("; ")}. ` +
      "Check them before you continue.",
    cause,
  )
}

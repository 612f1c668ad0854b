import { copyFile, link, rename, rm, rmdir } from "node:fs/promises"
import { basename, dirname, join } from "node:path"
import { errorMessage, systemCode, TackleError } from "../util/errors.ts"
import { temporaryName } from "../util/file-system.ts"
import { MovedPathError, openPinnedDirectory, type PinnedDirectory } from "../util/pinned-path.ts"
import { stageFile } from "./atomic-write.ts"
import type { FileStamp } from "./file-tracker.ts"
import { showName } from "./show-name.ts"
import { removeTemporary, type TrackedTemporary, type TrackTemporary } from "./temporary-files.ts"

/** The planned state of one file. `path` must be resolved. */
export interface FileStep {
  path: string
  /** True if the file exists before the change. */
  exists: boolean
  /** New content. Undefined to delete the file. */
  bytes: Uint8Array | undefined
  /** Path of the file whose mode and owner the new file gets. Default: `path`. */
  like?: string
  /** Called directly before the change. If it throws, all files are restored. */
  check?: () => Promise<void>
}

/**
 * Some files could be neither changed nor restored. The message lists these files and the backups of their old content.
 */
export class RollbackError extends TackleError {
  constructor(message: string, cause: unknown) {
    super(message, { code: "file.rollback", recoverable: true, cause })
  }
}

/**
 * Makes all changes or none. Writes and syncs all new content to temporary files first, so that a full disk fails
 * early. Then renames these files, and deletes files last. If a change fails, restores earlier files with the same
 * content, mode, times and inodes, and removes new directories. Links inserted meanwhile have no effect. Returns the
 * stamps of the written files by path. Throws `MovedPathError` with nothing changed, system errors, errors of the checks, and {@link
 * RollbackError} if restoring fails.
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
    for (const [{ path, exists, check }, { beside }] of staged) {
      const place = directories.place(path, undo)
      await check?.()
      if (exists) await replace(place, beside, { undo, temporary })
      else await put(place, beside, undo)
    }
    for (const { path, bytes, check } of steps) {
      if (bytes !== undefined) continue
      await check?.()
      await remove(directories.place(path, undo), { undo, temporary })
    }
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

/** A complete temporary file in the same directory as its destination. */
interface StagedFile {
  beside: HeldPath
  stamp: FileStamp
}

/** Creates and removes the temporary files of a change. */
function createTemporaryFiles(trackTemporary: TrackTemporary) {
  const noted: { file: HeldPath; record: TrackedTemporary }[] = []
  return {
    /** Returns a new path in the directory of the given file, and records it as a temporary file. */
    beside({ named, now }: HeldPath, { backup = false } = {}): HeldPath {
      const name = temporaryName()
      const file = { named: join(dirname(named), name), now: join(dirname(now), name) }
      noted.push({ file, record: trackTemporary({ path: file.named, backupOf: backup ? named : undefined }) })
      return file
    },
    /**
     * Removes all temporary files except the needed ones, which now belong to the user. A file that cannot be removed
     * does not fail the change.
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

/** Two paths of one file: `named` for messages, and `now`, which goes through its open directory. */
interface HeldPath {
  named: string
  now: string
}

/** An operation that reverts one change. */
interface Undo {
  what: string
  /** File with the old content. It exists until the old content is restored. */
  backup?: HeldPath
  run: () => Promise<void>
}

/** Opens each directory once and keeps it open. Creates directories that do not exist. */
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

/** Removes a directory. Keeps it if it is not empty or has moved. */
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

/**
 * Creates a hard link as the backup, so that the file always has a name. Copies the file if the file system does not
 * support hard links.
 */
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

/** Reverts all changes, latest first, and returns the failures. Continues after a failure. */
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

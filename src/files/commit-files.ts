import { lstatSync } from "node:fs"
import { chmod, copyFile, link, mkdir, readdir, readlink, rename, rm, rmdir, symlink } from "node:fs/promises"
import { basename, dirname, join } from "node:path"
import { errorMessage, systemCode, TackleError } from "../util/errors.ts"
import { temporaryName } from "../util/file-system.ts"
import { MovedPathError, openPinnedDirectory, type PinnedDirectory } from "../util/pinned-path.ts"
import { stageFile } from "./atomic-write.ts"
import type { FileStamp } from "./file-tracker.ts"
import { showName } from "./show-name.ts"
import { removeTemporary, type TrackedTemporary, type TrackTemporary } from "./temporary-files.ts"

/** The planned state of one file. `path` is absolute, with all links resolved. */
export interface FileStep {
  path: string
  /** Whether the file exists before the change. */
  exists: boolean
  /** New content. Undefined to delete the file. */
  bytes: Uint8Array | undefined
  /** Whether to create a symbolic link with `bytes` as its target. */
  link?: boolean
  /**
   * Whether the file replaces a directory. After the deletions of the change, the directory must contain no file.
   */
  overDirectory?: boolean
  /** Path of the file from which the new file gets its mode and owner. Default: `path`. */
  like?: string
  /** Permission bits of the new file, if the file system can store them. Default: those of `like`. */
  mode?: number
  /** Called directly before the change. If the function throws, all files are restored. */
  check?: () => Promise<void>
}

/**
 * Thrown if a change failed and some files or directories could not be restored. The message lists their paths and, for
 * files with a backup, the path of the backup.
 */
export class RollbackError extends TackleError {
  constructor(message: string, cause: unknown) {
    super(message, { code: "file.rollback", recoverable: true, cause })
  }
}

/**
 * Makes all changes or no changes. If a change fails, restores the files that have already changed and removes new
 * directories. A file may replace a directory that contains only files that the same change deletes, and a directory
 * may replace a deleted file. Returns the stamps of the written files by path. Throws `MovedPathError` if a path now
 * leads elsewhere, the system error if a change fails, errors from the `check` functions, and {@link RollbackError} if
 * restoring fails.
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
  const early = new Map(
    steps.flatMap((step) => {
      const replaced = step.bytes === undefined ? replacementOf(step, steps) : undefined
      return replaced ? [[step, replaced] as const] : []
    }),
  )
  try {
    for (const [{ path, check }, { path: replacement }] of early) {
      await check?.()
      await removeEarly(path, directories.place(replacement, undo), { undo, temporary })
    }
    for (const { path, overDirectory } of steps)
      if (overDirectory) await clearDirectory(directories.place(path, undo), undo)
    // Stages all new content before it replaces any file, so that a full disk is detected early.
    for (const step of steps) {
      if (early.has(step)) continue
      const place = directories.place(step.path, undo)
      if (step.bytes === undefined) continue
      const like = step.like === undefined ? place : directories.place(step.like, undo)
      const beside = temporary.beside(place)
      staged.set(step, { beside, stamp: await stage(beside.now, step, step.bytes, like.now) })
    }
    for (const [{ path, exists, check }, { beside }] of staged) {
      const place = directories.place(path, undo)
      await check?.()
      if (exists) await replace(place, beside, { undo, temporary })
      else await put(place, beside, undo)
    }
    for (const step of steps) {
      const { path, bytes, check } = step
      if (bytes !== undefined || early.has(step)) continue
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

/**
 * Returns the step that must wait until the file is deleted: a step that creates a file below the deleted path, or at
 * one of the path's parent directories. A backup can be stored next to the `path` of the returned step.
 */
function replacementOf({ path }: FileStep, steps: readonly FileStep[]): FileStep | undefined {
  const created = (other: FileStep) => other.bytes !== undefined
  const below = steps.find((other) => created(other) && other.path.startsWith(`${path}/`))
  return below
    ? { ...below, path }
    : steps.find((other) => created(other) && path.startsWith(`${other.path}/`))
}

/** Deletes a file whose directory may also be removed. The backup is in the directory of `beside`. */
async function removeEarly(
  path: string,
  beside: HeldPath,
  { undo, temporary }: { undo: Undo[]; temporary: TemporaryFiles },
): Promise<void> {
  const backup = temporary.beside(beside, { backupOf: path })
  const move = async (from: (entry: string) => string, to: (entry: string) => string) => {
    const parent = openPinnedDirectory(dirname(path), { make: false })
    try {
      const entry = parent.entry(basename(path))
      await rename(from(entry), to(entry))
    } finally {
      parent.close()
    }
  }
  await move(
    (entry) => entry,
    () => backup.now,
  )
  const run = () =>
    move(
      () => backup.now,
      (entry) => entry,
    )
  undo.push({ what: showName(path), backup, run })
}

/**
 * Removes a directory that contains only empty directories. Does nothing if the path is not a directory. Throws the
 * system error if the directory contains a file.
 */
async function clearDirectory({ named, now }: HeldPath, undo: Undo[]): Promise<void> {
  const found = lstatSync(now, { throwIfNoEntry: false })
  if (!found?.isDirectory()) return
  for (const name of await readdir(now))
    await clearDirectory({ named: join(named, name), now: join(now, name) }, undo)
  await rmdir(now)
  const run = () => mkdir(now, { mode: found.mode & 0o7777 }).then(() => {})
  undo.push({ what: `the directory ${showName(named)}`, run })
}

/** Creates the temporary file or link of a step. */
async function stage(
  temporary: string,
  { link: isLink, mode }: FileStep,
  bytes: Uint8Array,
  like: string,
): Promise<FileStamp> {
  if (!isLink) {
    const stamp = await stageFile(temporary, bytes, like)
    if (mode !== undefined) await chmod(temporary, mode).catch(() => {})
    return stamp
  }
  await symlink(Buffer.from(bytes).toString(), temporary)
  return { size: bytes.length, mtimeMs: 0 }
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
    beside({ named, now }: HeldPath, { backupOf }: { backupOf?: string } = {}): HeldPath {
      const name = temporaryName()
      const file = { named: join(dirname(named), name), now: join(dirname(now), name) }
      noted.push({ file, record: trackTemporary({ path: file.named, backupOf }) })
      return file
    },
    /**
     * Removes all temporary files except the files in `needed`, which now belong to the user. A file that cannot be
     * removed does not fail the change.
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

/** Two paths to one file: `named` is used in messages, and `now` goes through the open directory of the file. */
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

/**
 * Removes an empty directory. Does nothing if the directory is not empty, does not exist or has moved, or if the path
 * is not a directory. Throws the system error if the removal fails for another reason.
 */
export async function removeEmpty(path: string): Promise<void> {
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
  const backup = temporary.beside(place, { backupOf: place.named })
  await keep(place.now, backup.now)
  undo.push({ what: showName(place.named), backup, run: () => rename(backup.now, place.now) })
  await rename(next, place.now)
}

/**
 * Creates a hard link as the backup, so that the file always has a name. Copies the file if the file system does not
 * support hard links.
 */
async function keep(path: string, backup: string): Promise<void> {
  // For a symbolic link, some systems would create a hard link to its target.
  if (lstatSync(path).isSymbolicLink()) return symlink(await readlink(path), backup)
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
  const backup = temporary.beside(place, { backupOf: place.named })
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
    `${errorMessage(cause).replace(/\.$/, "")}. These paths could not be restored: ${named.join("; ")}. ` +
      "Check these paths before you continue.",
    cause,
  )
}

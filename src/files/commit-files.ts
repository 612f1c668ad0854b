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

/** One file as it is to become. `path` is resolved. */
export interface FileStep {
  path: string
  /** Whether a file stands there now. */
  exists: boolean
  /** Undefined: the file goes. */
  bytes: Uint8Array | undefined
  /** The file whose mode and owner the new bytes get. Default: the one at `path`. */
  like?: string
}

/** Some files could be neither changed nor put back. The message names them and where their old bytes are. */
export class RollbackError extends TackleError {
  constructor(message: string, cause: unknown) {
    super(message, { code: "file.rollback", recoverable: true, cause })
  }
}

/**
 * Makes all changes or none. Everything new is on the disk beside its place before the first file changes, so that a
 * full disk or a missing right is met in time; then each takes its place by a rename, files that go last. When one
 * fails, those before it are put back: the same bytes, mode and times, being the same files; new directories go.
 * The paths are resolved: their directories are held open from before the first change to the end, so that links which
 * are put into a path meanwhile lead nothing astray. Returns the stamps of the written files by path. Throws
 * `MovedPathError` with nothing changed, what the system threw, and {@link RollbackError} where putting back failed too.
 * The files that stand beside theirs meanwhile, with new and with old bytes, are told to `note`, and so is one that
 * cannot be removed at the end.
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

/** A whole file beside the place that it is meant for. */
interface StagedFile {
  beside: HeldPath
  stamp: FileStamp
}

/** The files that stand beside others for the length of the change. */
function createTemporaryFiles(trackTemporary: TrackTemporary) {
  const noted: { file: HeldPath; record: TrackedTemporary }[] = []
  return {
    /** A name in the same directory that nothing has. */
    beside({ named, now }: HeldPath, { backup = false } = {}): HeldPath {
      const name = temporaryName()
      const file = { named: join(dirname(named), name), now: join(dirname(now), name) }
      noted.push({ file, record: trackTemporary({ path: file.named, backupOf: backup ? named : undefined }) })
      return file
    },
    /**
     * All but the needed ones, which are the person's from now on. One that cannot be removed makes no other outcome of
     * the change.
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

/** A file by two paths: the one that it is told by, and the one by way of its open directory. */
interface HeldPath {
  named: string
  now: string
}

/** How one thing is taken back, in words and in deed. */
interface Undo {
  what: string
  /** Where the old bytes are as long as they are not back. */
  backup?: HeldPath
  run: () => Promise<void>
}

/** Each directory is opened once, and made where it is not there. */
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

/** One in which something else stands by now stays, and so does one that is elsewhere. */
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

/** A second name for the file, so that it never is without one; a copy where the file system knows no links. */
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

/** Latest first; what cannot be taken back does not keep the rest from it. */
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
    const where = backup === undefined ? "" : `, whose old bytes are in ${showName(backup.named)}`
    return `${what}${where} (${errorMessage(error)})`
  })
  return new RollbackError(
    `${errorMessage(cause)}. The files that had changed by then were to be put back, which failed for: ${named.join("; ")}. ` +
      "Look at them before you go on.",
    cause,
  )
}

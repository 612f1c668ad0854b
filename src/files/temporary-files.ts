import { type BigIntStats, lstatSync } from "node:fs"
import { rm } from "node:fs/promises"
import { basename, dirname } from "node:path"
import * as z from "zod"
import { errorMessage, systemCode, TackleError } from "../util/errors.ts"
import { isTemporaryName } from "../util/file-system.ts"
import { createJournal } from "../util/journal.ts"
import { MovedPathError, openPinnedDirectory } from "../util/pinned-path.ts"

/** A temporary file that exists next to the user's files during a change. Both paths are resolved. */
export interface TemporaryFile {
  /** Path of the temporary file. Its name comes from `temporaryName`. */
  path: string
  /**
   * Path of the file whose old content the temporary file contains, in case the change fails. Absent if the temporary
   * file contains new content.
   */
  backupOf?: string
}

/**
 * Records a temporary file. Call this function before you create the file, and report the outcome to the returned
 * record.
 */
export type TrackTemporary = (file: TemporaryFile) => TrackedTemporary

/** The record of a temporary file. */
export interface TrackedTemporary {
  /** Removes the record. Call this function after the file has been removed, renamed or left to the user. */
  done(): void
  /** Reports that the file cannot be removed. Keeps the record, so that Tackle tries again at a later start. */
  failed(error: unknown): void
}

/** Records the temporary files of all processes that use one data directory, so that a later start can remove them. */
export interface TemporaryFileJournal {
  track: TrackTemporary
  /**
   * Removes the recorded files of processes that are no longer running. Removes a backup only if its content also
   * exists in the original file or, according to `isKept`, in a store. Otherwise reports the path of the backup once.
   */
  endOrphans(isKept: (path: string) => Promise<boolean>): Promise<void>
}

/** Implements {@link TrackTemporary} without creating records, for callers without a journal. */
export const untracked: TrackTemporary = () => ({ done() {}, failed() {} })

/** Removes a temporary file at its current `path` and reports the outcome to its record. Never rejects. */
export async function removeTemporary(path: string, record: TrackedTemporary): Promise<void> {
  try {
    await rm(path, { force: true })
    record.done()
  } catch (error) {
    record.failed(error)
  }
}

const fileSchema = z.lazy(() =>
  z.object({
    path: z.string().refine((path) => isTemporaryName(basename(path))),
    backupOf: z.string().optional(),
  }),
)

const problems = {
  write: "could not record a temporary file; if this process is killed, the file stays on disk",
  remove: "could not remove the record of a temporary file",
  end: "could not remove a temporary file that a killed run left",
}

/** Thrown if a backup is not removed because it is the only copy of a file's old content. */
class OldBytesLeftError extends TackleError {
  constructor(path: string, of: string) {
    super(
      `${path} contains the old content of ${of}. Compare the two files, and remove the file that you do not need.`,
      {
        code: "file.old-bytes",
        recoverable: false,
      },
    )
  }
}

/** Reports to the user that a temporary file could not be removed. */
class TemporaryLeftError extends TackleError {
  constructor({ path, backupOf }: TemporaryFile, cause: unknown) {
    const content = backupOf === undefined ? "" : ` It contains the old content of ${backupOf}.`
    super(
      `Cannot remove the temporary file ${path}: ${errorMessage(cause)}.${content} Remove the file, or let Tackle try again at its next start.`,
      { code: "file.temporary-left", recoverable: false, cause },
    )
  }
}

/** Creates a journal. The first record creates its directory. Journal errors do not stop a change. */
export function createTemporaryFileJournal(
  directory: string,
  onProblem: (message: string, error: unknown) => void,
): TemporaryFileJournal {
  const journal = createJournal<TemporaryFile>({
    directory,
    schema: fileSchema,
    onProblem: (what, error) => onProblem(problems[what], error),
  })
  return {
    track(file) {
      const done = journal.add(basename(file.path, ".tmp").slice(".tackle-".length), file)
      return {
        done,
        failed: (error) =>
          onProblem("a temporary file could not be removed", new TemporaryLeftError(file, error)),
      }
    },
    endOrphans: (isKept) =>
      journal.endOrphans(async (file) => {
        try {
          await remove(file, isKept)
        } catch (error) {
          if (!(error instanceof OldBytesLeftError)) throw error
          onProblem("a killed run left an incomplete change", error)
        }
      }),
  }
}

/**
 * Removes a temporary file. Does nothing if its directory is gone or now resolves to another path. Throws {@link
 * OldBytesLeftError} if the file is the only copy of a file's old content.
 */
async function remove(
  { path, backupOf }: TemporaryFile,
  isKept: (path: string) => Promise<boolean>,
): Promise<void> {
  try {
    const directory = openPinnedDirectory(dirname(path), { make: false })
    try {
      const place = directory.entry(basename(path))
      const found = lstatSync(place, { bigint: true, throwIfNoEntry: false })
      if (!found?.isFile() && !found?.isSymbolicLink()) return
      if (backupOf !== undefined && !isSame(found, backupOf) && !(await isKept(place)))
        throw new OldBytesLeftError(path, backupOf)
      await rm(place, { force: true })
    } finally {
      directory.close()
    }
  } catch (error) {
    if (error instanceof MovedPathError || ["ENOENT", "ENOTDIR"].includes(systemCode(error) ?? "")) return
    throw error
  }
}

/** Returns true if the backup is still a hard link to the original file. */
function isSame({ dev, ino }: BigIntStats, path: string): boolean {
  try {
    const there = lstatSync(path, { bigint: true })
    return there.dev === dev && there.ino === ino
  } catch (error) {
    // A file may have replaced a directory of the path.
    if (["ENOENT", "ENOTDIR"].includes(systemCode(error) ?? "")) return false
    throw error
  }
}

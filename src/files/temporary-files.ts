import { randomBytes } from "node:crypto"
import { type BigIntStats, lstatSync } from "node:fs"
import { rm } from "node:fs/promises"
import { basename, dirname } from "node:path"
import * as z from "zod"
import { errorMessage, systemCode, TackleError } from "../util/errors.ts"
import { createJournal } from "../util/journal.ts"
import { MovedPathError, openPinnedDirectory } from "../util/pinned-path.ts"

/** A temporary file beside the user's files during a change. Both paths are resolved. */
export interface TemporaryFile {
  /** Named by {@link temporaryName}. */
  path: string
  /** The file whose old content it holds, in case the change fails. Absent if it holds new content. */
  backupOf?: string
}

/** Records a temporary file. Call it before the file is created, and report the outcome to the result. */
export type TrackTemporary = (file: TemporaryFile) => TrackedTemporary

/** The record of a temporary file. */
export interface TrackedTemporary {
  /** Removes the record: the file was removed or renamed, or belongs to the user from now on. */
  done(): void
  /** Reports that the file cannot be removed, and keeps the record: a later start tries again. */
  failed(error: unknown): void
}

/** Records the temporary files of all processes with one data directory, so that a later start can remove them. */
export interface TemporaryFileJournal {
  track: TrackTemporary
  /**
   * Removes the recorded files of processes that are gone. Removes a backup only if its content exists elsewhere: in the
   * original file, or, according to `isKept`, in a store. Otherwise reports its path once.
   */
  endOrphans(isKept: (path: string) => Promise<boolean>): Promise<void>
}

/** Returns a random file name for a temporary file. */
export function temporaryName(): string {
  return `.tackle-${randomBytes(6).toString("hex")}.tmp`
}

/** Records nothing. */
export const untracked: TrackTemporary = () => ({ done() {}, failed() {} })

/** Removes a temporary file, now at `path`, and reports the outcome to its record. Never rejects. */
export async function removeTemporary(path: string, record: TrackedTemporary): Promise<void> {
  try {
    await rm(path, { force: true })
    record.done()
  } catch (error) {
    record.failed(error)
  }
}

const nameShape = /^\.tackle-[0-9a-f]{12}\.tmp$/

const fileSchema = z.lazy(() =>
  z.object({
    path: z.string().refine((path) => nameShape.test(basename(path))),
    backupOf: z.string().optional(),
  }),
)

const problems = {
  write: "could not record a temporary file; it stays on disk if this process is killed",
  remove: "could not remove the record of a deleted temporary file",
  end: "could not remove a temporary file of a killed run",
}

/** A backup is the only copy of a file's old content. */
class OldBytesLeftError extends TackleError {
  constructor(path: string, of: string) {
    super(
      `${path} contains the old content of ${of}. Compare both files, and remove the one that you do not need.`,
      {
        code: "file.old-bytes",
        recoverable: false,
      },
    )
  }
}

/** A temporary file could not be removed. */
class TemporaryLeftError extends TackleError {
  constructor({ path, backupOf }: TemporaryFile, cause: unknown) {
    const content = backupOf === undefined ? "" : ` It contains the old content of ${backupOf}.`
    super(
      `Cannot remove the temporary file ${path}: ${errorMessage(cause)}.${content} Remove it, or a later start tries again.`,
      { code: "file.temporary-left", recoverable: false, cause },
    )
  }
}

/** Creates a journal. Its directory is created with the first record. Journal errors do not stop a change. */
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

/** Does nothing if the directory is gone or now leads elsewhere. */
async function remove(
  { path, backupOf }: TemporaryFile,
  isKept: (path: string) => Promise<boolean>,
): Promise<void> {
  try {
    const directory = openPinnedDirectory(dirname(path), { make: false })
    try {
      const place = directory.entry(basename(path))
      const found = lstatSync(place, { bigint: true, throwIfNoEntry: false })
      if (!found?.isFile()) return
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
  const there = lstatSync(path, { bigint: true, throwIfNoEntry: false })
  return there?.dev === dev && there.ino === ino
}

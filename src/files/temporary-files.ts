import { randomBytes } from "node:crypto"
import { type BigIntStats, lstatSync } from "node:fs"
import { rm } from "node:fs/promises"
import { basename, dirname } from "node:path"
import * as z from "zod"
import { errorMessage, systemCode, TackleError } from "../util/errors.ts"
import { createJournal } from "../util/journal.ts"
import { MovedPathError, openPinnedDirectory } from "../util/pinned-path.ts"

/** A file of ours among the person's own, for as long as a change takes. Both paths are resolved. */
export interface TemporaryFile {
  /** Its name is one of {@link temporaryName}. */
  path: string
  /** The file whose old bytes it holds, for the case that the change fails. Absent: it holds what is to become a file. */
  backupOf?: string | undefined
}

/** Writes the file down before it is made. What is returned is told what became of it. */
export type NoteTemporary = (file: TemporaryFile) => NotedTemporary

/** A file that is written down. */
export interface NotedTemporary {
  /** It is gone, has its place, or is the person's from now on. */
  removeRecords(): void
  /** It cannot be removed. The person hears of it at once; it stays written down, for a later start to try again. */
  stays(error: unknown): void
}

/** The temporary files of every process on a data directory, so that a later start removes what a killed one left. */
export interface TemporaryBook {
  note: NoteTemporary
  /**
   * Removes the files of processes that are gone: those that are written down, and no others. Old bytes go only where
   * they are somewhere else too, in their place or, for `isKept`, in a store. Where they are not, the fault names them.
   */
  endOrphans(isKept: (path: string) => Promise<boolean>): Promise<void>
}

/** A file name that nothing has. */
export function temporaryName(): string {
  return `.tackle-${randomBytes(6).toString("hex")}.tmp`
}

/** For changes that no process will look after. */
export const noteNowhere: NoteTemporary = () => ({ removeRecords() {}, stays() {} })

/** Removes the file, which is at `path` by now, and tells its record how that went. Throws nothing. */
export async function removeNoted(path: string, record: NotedTemporary): Promise<void> {
  try {
    await rm(path, { force: true })
    record.removeRecords()
  } catch (error) {
    record.stays(error)
  }
}

const nameShape = /^\.tackle-[0-9a-f]{12}\.tmp$/

const fileSchema = z.lazy(() =>
  z.object({
    path: z.string().refine((path) => nameShape.test(basename(path))),
    backupOf: z.string().optional(),
  }),
)

const faults = {
  write: "a temporary file could not be written down, so nobody removes it should this process be killed",
  remove: "could not remove the record of a deleted temporary file",
  end: "a temporary file of a killed run could not be removed",
}

/** Only the old bytes of a file that a change was in the middle of. */
class OldBytesLeftError extends TackleError {
  constructor(path: string, of: string) {
    super(`${path} holds what ${of} was before. Look at both, and remove the one that you do not want.`, {
      code: "file.old-bytes",
      recoverable: false,
    })
  }
}

/** A file of ours that stays beside the person's. */
class TemporaryLeftError extends TackleError {
  constructor({ path, backupOf }: TemporaryFile, cause: unknown) {
    const holds =
      backupOf === undefined ? "" : ` It holds what ${backupOf} was before the change, which was made.`
    super(
      `${path} is left and cannot be removed: ${errorMessage(cause)}.${holds} Remove it; else a later start tries again.`,
      { code: "file.temporary-left", recoverable: false, cause },
    )
  }
}

/** A book in the directory, which is made with the first file. What goes wrong with it stops no change. */
export function createTemporaryBook(
  directory: string,
  onProblem: (message: string, error: unknown) => void,
): TemporaryBook {
  const book = createJournal<TemporaryFile>({
    directory,
    schema: fileSchema,
    onProblem: (what, error) => onProblem(faults[what], error),
  })
  return {
    note(file) {
      const removeRecords = book.add(basename(file.path, ".tmp").slice(".tackle-".length), file)
      return {
        removeRecords,
        stays: (error) =>
          onProblem("a file was left beside the changed ones", new TemporaryLeftError(file, error)),
      }
    },
    endOrphans: (isKept) =>
      book.endOrphans(async (file) => {
        try {
          await remove(file, isKept)
        } catch (error) {
          if (!(error instanceof OldBytesLeftError)) throw error
          onProblem("a killed run was in the middle of a change", error)
        }
      }),
  }
}

/** A directory that is gone, or leads elsewhere by now, has nothing of ours. */
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

/** The backup is a second name of the file until the new one takes its place. */
function isSame({ dev, ino }: BigIntStats, path: string): boolean {
  const there = lstatSync(path, { bigint: true, throwIfNoEntry: false })
  return there?.dev === dev && there.ino === ino
}

import { lstatSync, rmdirSync } from "node:fs"
import * as z from "zod"
import { systemCode } from "../util/errors.ts"
import { newId } from "../util/id.ts"
import { createJournal } from "../util/journal.ts"

/** The placeholders of every process on a data directory, so that a later start removes what a killed one left. */
export interface PlaceholderBook {
  /** Writes down that a directory will be made, or is held together with others. */
  note(path: string): NotedPlaceholder
  /** The paths of those that stand as they were made, also where whoever made them is gone. */
  standing(): string[]
  /**
   * Removes what processes that are gone made: only directories that are written down, the very ones, empty and held
   * by no process that runs. To be called when the commands of those processes are ended.
   */
  endOrphans(): Promise<void>
}

/** One that is written down. */
export interface NotedPlaceholder {
  /** It is there: from now on only this very directory counts, and not a later one at its path. */
  stands(): void
  /** True while someone else who runs holds it too. */
  isShared(): boolean
  /** It is gone, or held no more. May be called again. */
  removeRecords(): void
}

/** For a sandbox whose placeholders no process will look after. */
export const noPlaceholderBook: PlaceholderBook = {
  note: () => ({ stands() {}, isShared: () => false, removeRecords() {} }),
  standing: () => [],
  endOrphans: async () => {},
}

const recordSchema = z.lazy(() =>
  z.object({ id: z.string(), path: z.string().startsWith("/"), stamp: z.string().optional() }),
)

const faults = {
  write:
    "an empty directory could not be written down, so nobody removes it from the project should this process be killed",
  remove: "could not remove the record of a deleted placeholder directory",
  end: "an empty directory that a killed run left in the project could not be removed",
}

/** A book in the directory, which is made with the first placeholder. What goes wrong with it stops no command. */
export function createPlaceholderBook(
  directory: string,
  onProblem: (message: string, error: unknown) => void,
): PlaceholderBook {
  const book = createJournal<z.infer<typeof recordSchema>>({
    directory,
    schema: recordSchema,
    onProblem: (what, error) => onProblem(faults[what], error),
  })

  function isHeld(path: string, except?: string): boolean {
    return book
      .entries()
      .some(({ isAlive, record }) => isAlive && record.path === path && record.id !== except)
  }

  return {
    note(path) {
      const id = newId("plc")
      let removeRecords = book.add(`${id}-intent`, { id, path })
      return {
        stands() {
          const removeIntent = removeRecords
          const stamp = stampOf(path)
          if (stamp === undefined) return
          removeRecords = book.add(id, { id, path, stamp })
          removeIntent()
        },
        isShared: () => isHeld(path, id),
        removeRecords: () => removeRecords(),
      }
    },
    standing() {
      const paths = book.entries().flatMap(({ record: { path, stamp } }) => {
        return stamp !== undefined && stamp === stampOf(path) ? [path] : []
      })
      return [...new Set(paths)]
    },
    endOrphans: () =>
      book.endOrphans(async ({ path, stamp }) => {
        // Who holds it takes it away. Nothing of this process comes between the look and the removal.
        if (isHeld(path)) return
        // Without a stamp the process was killed while it made it.
        if (stamp === undefined || stamp === stampOf(path)) removeEmpty(path)
      }),
  }
}

/**
 * Tells the directory from a later one at its path; undefined where there is none. The number alone does not: file
 * systems give it again at once.
 */
function stampOf(path: string): string | undefined {
  try {
    const found = lstatSync(path, { bigint: true })
    return found.isDirectory() ? `${found.ino}-${found.birthtimeNs}` : undefined
  } catch (error) {
    if (isGone(error)) return undefined
    throw error
  }
}

/** What has content by now is the person's, and stays. */
function removeEmpty(path: string): void {
  try {
    rmdirSync(path)
  } catch (error) {
    if (!isGone(error) && !["ENOTEMPTY", "EEXIST"].includes(systemCode(error) ?? "")) throw error
  }
}

function isGone(error: unknown): boolean {
  return ["ENOENT", "ENOTDIR"].includes(systemCode(error) ?? "")
}

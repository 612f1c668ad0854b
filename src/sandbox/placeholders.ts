import { lstatSync, mkdirSync, rmdirSync } from "node:fs"
import * as z from "zod"
import { systemCode } from "../util/errors.ts"
import { newId } from "../util/id.ts"
import { createJournal } from "../util/journal.ts"
import type { Bounds } from "./bounds.ts"

/** Creates empty directories at paths that commands must not create. */
export interface Placeholders {
  /**
   * Creates the `absent` directories for mounts to cover: a covered directory cannot be created, filled or replaced.
   * Ignores paths that exist or cannot be created. Also holds the placeholders of other commands that the bounds
   * name. The returned function removes each empty directory that no command holds any more.
   */
  hold(bounds: Pick<Bounds, "writable" | "readOnly" | "hidden" | "absent">): () => void
}

/** Creates the placeholders of one engine. The journal, if any, records them and lists those of other engines. */
export function createPlaceholders(journal?: PlaceholderJournal): Placeholders {
  const holders = new Map<string, { count: number; record?: PlaceholderRecord }>()

  /** Returns false if the directory is not a placeholder. */
  function take(path: string): boolean {
    const holder = holders.get(path)
    if (holder) {
      holder.count += 1
      return true
    }
    const record = journal?.add(path)
    try {
      // If it cannot be created here, the command cannot create it. If it exists, it has its own bounds.
      const created = unless(["EEXIST", "ENOENT", "ENOTDIR", ...denied], () => mkdirSync(path))
      if (!created && !journal?.existing().includes(path)) {
        record?.remove()
        return false
      }
    } catch (error) {
      record?.remove()
      throw error
    }
    record?.created()
    holders.set(path, { count: 1, record })
    return true
  }

  function release(path: string): void {
    const holder = holders.get(path)
    if (!holder) return
    holder.count -= 1
    if (holder.count > 0) return
    holders.delete(path)
    const { record } = holder
    // Two processes that release at the same time can each see the other, so this one checks again without its record.
    if (record?.isShared()) record.remove()
    // The user can have filled or removed the directory.
    if (!record?.isShared())
      unless(["ENOTEMPTY", "EEXIST", "ENOENT", "ENOTDIR", "EBUSY", ...denied], () => rmdirSync(path))
    record?.remove()
  }

  return {
    hold({ writable, readOnly, hidden, absent }) {
      const named = new Set([...writable, ...readOnly, ...hidden])
      // Removing a placeholder would remove the mounts over it in every sandbox.
      const existing = [...holders.keys(), ...(journal?.existing() ?? [])].filter((path) => named.has(path))
      // Sorted, so that a directory is created before its subdirectories.
      const held = [...new Set([...absent, ...existing])].sort().filter(take)
      let released = false
      return () => {
        if (released) return
        released = true
        for (const path of held.toReversed()) release(path)
      }
    },
  }
}

const denied = ["EACCES", "EPERM", "EROFS"]

/** Returns false if the action fails with one of these codes. */
function unless(codes: readonly string[], act: () => void): boolean {
  try {
    act()
    return true
  } catch (error) {
    if (codes.includes(systemCode(error) ?? "")) return false
    throw error
  }
}

/** Records the placeholders of all processes of a data directory, so that a later start removes those of a killed one. */
export interface PlaceholderJournal {
  /** Records that this process will create or hold the directory. */
  add(path: string): PlaceholderRecord
  /** Lists the recorded directories that exist unchanged, including those of processes that are gone. */
  existing(): string[]
  /**
   * Removes the recorded directories of processes that are gone, if they are unchanged, empty and not held by a running
   * process. Call it after the commands of those processes have ended.
   */
  endOrphans(): Promise<void>
}

interface PlaceholderRecord {
  /** Records the identity of the directory, so that a later directory at this path does not match. */
  created(): void
  /** Returns true while another running process holds the directory. */
  isShared(): boolean
  /** Removes the record. Idempotent. */
  remove(): void
}

const recordSchema = z.lazy(() =>
  z.object({ id: z.string(), path: z.string().startsWith("/"), stamp: z.string().optional() }),
)

const problems = {
  write: "could not record a placeholder directory; if this process is killed, it stays in the project",
  remove: "could not remove the record of a deleted placeholder directory",
  end: "could not remove a placeholder directory that a killed run left in the project",
}

/** Opens a journal in a directory, which is created with the first record. Errors go to `onProblem` and stop nothing. */
export function createPlaceholderJournal(
  directory: string,
  onProblem: (message: string, error: unknown) => void,
): PlaceholderJournal {
  const journal = createJournal<z.infer<typeof recordSchema>>({
    directory,
    schema: recordSchema,
    onProblem: (what, error) => onProblem(problems[what], error),
  })
  const isHeld = (path: string, except?: string) =>
    journal.entries().some(({ isAlive, record }) => isAlive && record.path === path && record.id !== except)

  return {
    add(path) {
      const id = newId("plc")
      let remove = journal.add(`${id}-intent`, { id, path })
      return {
        created() {
          const removeIntent = remove
          const stamp = stampOf(path)
          if (stamp === undefined) return
          remove = journal.add(id, { id, path, stamp })
          removeIntent()
        },
        isShared: () => isHeld(path, id),
        remove: () => remove(),
      }
    },
    existing() {
      const records = journal.entries().map(({ record }) => record)
      const unchanged = records.filter(({ path, stamp }) => stamp !== undefined && stamp === stampOf(path))
      return [...new Set(unchanged.map(({ path }) => path))]
    },
    endOrphans: () =>
      journal.endOrphans(async ({ path, stamp }) => {
        // The holder removes it. This process does nothing else between the check and the removal.
        if (isHeld(path)) return
        // Without a stamp the process was killed while it created the directory.
        if (stamp !== undefined && stamp !== stampOf(path)) return
        // A directory with content belongs to the user.
        unless([...gone, "ENOTEMPTY", "EEXIST"], () => rmdirSync(path))
      }),
  }
}

const gone = ["ENOENT", "ENOTDIR"]

/**
 * Identifies a directory, or returns undefined if it does not exist. The inode number alone is not enough: file systems
 * reuse it immediately.
 */
function stampOf(path: string): string | undefined {
  try {
    const found = lstatSync(path, { bigint: true })
    return found.isDirectory() ? `${found.ino}-${found.birthtimeNs}` : undefined
  } catch (error) {
    if (gone.includes(systemCode(error) ?? "")) return undefined
    throw error
  }
}

import { lstatSync, mkdirSync, rmdirSync } from "node:fs"
import * as z from "zod"
import { systemCode } from "../util/errors.ts"
import { newId } from "../util/id.ts"
import { createJournal } from "../util/journal.ts"
import { isInside } from "../util/paths.ts"
import { type Bounds, missingParents } from "./bounds.ts"

/** Creates empty directories at paths that commands must not create. */
export interface Placeholders {
  /**
   * Creates directories at the `absent` paths, with missing parents, so that the sandbox can mount over them. A command
   * cannot create, fill or replace a mounted directory. Ignores paths that exist or cannot be created. Also holds
   * existing placeholders of other commands at paths in the bounds. Returns a function that removes each empty directory
   * that no other command holds.
   */
  hold(bounds: Pick<Bounds, "writable" | "readOnly" | "hidden" | "absent">): () => void
}

/**
 * Creates the placeholders for one engine. If a journal is given, the journal records these placeholders and lists the
 * placeholders of other engines.
 */
export function createPlaceholders(journal?: PlaceholderJournal): Placeholders {
  const holders = new Map<string, { count: number; record?: PlaceholderRecord }>()

  /** Creates or holds a placeholder. Returns false if the path cannot be a placeholder. */
  function take(path: string): boolean {
    const holder = holders.get(path)
    if (holder) {
      holder.count += 1
      return true
    }
    const record = journal?.add(path)
    try {
      // If this process cannot create the path, the command cannot create it either. If the path exists, other bounds
      // apply to it.
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
    // Two processes that release the directory at the same time can each see the other's record. Therefore, remove the
    // record of this process first, and then check again.
    if (record?.isShared()) record.remove()
    // The user may have filled or removed the directory.
    if (!record?.isShared())
      unless(["ENOTEMPTY", "EEXIST", "ENOENT", "ENOTDIR", "EBUSY", ...denied], () => rmdirSync(path))
    record?.remove()
  }

  return {
    hold({ writable, readOnly, hidden, absent }) {
      const named = new Set([...writable, ...readOnly, ...hidden])
      const created = absent.flatMap((path) => [path, ...missingParents(path)])
      // Also holds the placeholders of other processes, because removing a placeholder removes the mounts over it in
      // every sandbox.
      const existing = [...holders.keys(), ...(journal?.existing() ?? [])].filter(
        (path) => named.has(path) || absent.some((each) => isInside(each, path)),
      )
      // Sort the paths, so that a directory is created before its subdirectories.
      const held = [...new Set([...created, ...existing])].sort().filter(take)
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

/** Runs the action. Returns false if it fails with one of the codes. */
function unless(codes: readonly string[], act: () => void): boolean {
  try {
    act()
    return true
  } catch (error) {
    if (codes.includes(systemCode(error) ?? "")) return false
    throw error
  }
}

/**
 * Records the placeholders of all processes that share a data directory. A later start removes the placeholders of a
 * killed process.
 */
export interface PlaceholderJournal {
  /** Records that this process will create or hold the directory. */
  add(path: string): PlaceholderRecord
  /** Lists the recorded directories that still exist unchanged, including those of ended processes. */
  existing(): string[]
  /**
   * Removes the recorded directories of ended processes if they are unchanged, empty and not held by a running process.
   * Call this after the commands of those processes have ended.
   */
  endOrphans(): Promise<void>
}

interface PlaceholderRecord {
  /** Records the identity of the directory, so that a directory created later at this path does not match. */
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
  write:
    "could not record a placeholder directory; if this process is killed, the directory stays in the project",
  remove: "could not remove the record of a deleted placeholder directory",
  end: "could not remove a placeholder directory that a killed run left in the project",
}

/**
 * Opens a journal in `directory`, which is created with the first record. Journal errors are reported to `onProblem`
 * and do not stop the operation.
 */
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
        // The process that holds the directory removes it. The check and the removal are synchronous.
        if (isHeld(path)) return
        // A record without a stamp means that the process was killed while it created the directory.
        if (stamp !== undefined && stamp !== stampOf(path)) return
        // Keep a directory with content, because it belongs to the user.
        unless([...gone, "ENOTEMPTY", "EEXIST"], () => rmdirSync(path))
      }),
  }
}

const gone = ["ENOENT", "ENOTDIR"]

/**
 * Returns an identifier for a directory, or undefined if the directory does not exist. The inode number alone is not
 * sufficient, because file systems reuse it immediately.
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

import { mkdirSync, rmdirSync } from "node:fs"
import { systemCode } from "../util/errors.ts"
import type { Bounds } from "./bounds.ts"
import type { NotedPlaceholder, PlaceholderBook } from "./placeholder-book.ts"

/** Empty directories that stand where nothing is to come into being. */
export interface Placeholders {
  /**
   * Makes the directories that are to stay absent, so that something can be mounted over them: what is mounted over
   * cannot be made, filled or replaced. Those that exist by now, or cannot be made, are left alone. What the bounds name
   * because it stands there for another command is held as well. The function it returns takes them away once nobody
   * holds them any more; one that is not empty stays.
   */
  hold(bounds: Pick<Bounds, "writable" | "readOnly" | "hidden" | "absent">): () => void
}

/** One for an engine: commands side by side may need the same. Those of other engines are known by the book. */
export function createPlaceholders(book: PlaceholderBook): Placeholders {
  const holders = new Map<string, { count: number; noted: NotedPlaceholder }>()

  /** False: it is not ours. */
  function take(path: string): boolean {
    const holder = holders.get(path)
    if (holder) {
      holder.count += 1
      return true
    }
    const noted = book.note(path)
    try {
      // Where it cannot be made here the command cannot make it either; one that is there has bounds of its own.
      const made = unless(["EEXIST", "ENOENT", "ENOTDIR", ...noRight], () => mkdirSync(path))
      if (!made && !book.standing().includes(path)) {
        noted.removeRecords()
        return false
      }
    } catch (error) {
      noted.removeRecords()
      throw error
    }
    noted.stands()
    holders.set(path, { count: 1, noted })
    return true
  }

  function release(path: string): void {
    const holder = holders.get(path)
    if (!holder) return
    holder.count -= 1
    if (holder.count > 0) return
    holders.delete(path)
    const { noted } = holder
    // Of two that end at once each may see the other. So it is looked for again once this one is struck out.
    if (noted.isShared()) noted.removeRecords()
    // Somebody outside may have put something into it, or taken it away.
    if (!noted.isShared())
      unless(["ENOTEMPTY", "EEXIST", "ENOENT", "ENOTDIR", "EBUSY", ...noRight], () => rmdirSync(path))
    noted.removeRecords()
  }

  return {
    hold({ writable, readOnly, hidden, absent }) {
      const named = new Set([...writable, ...readOnly, ...hidden])
      // Taken away, it would take the mount over it along, in every sandbox.
      const standing = [...holders.keys(), ...book.standing()].filter((path) => named.has(path))
      // Sorted: what lies in another goes before it.
      const held = [...new Set([...absent, ...standing])].sort().filter(take)
      let released = false
      return () => {
        if (released) return
        released = true
        for (const path of held.toReversed()) release(path)
      }
    },
  }
}

const noRight = ["EACCES", "EPERM", "EROFS"]

/** True if it was done; false where the system said one of these. */
function unless(codes: readonly string[], act: () => void): boolean {
  try {
    act()
    return true
  } catch (error) {
    if (codes.includes(systemCode(error) ?? "")) return false
    throw error
  }
}

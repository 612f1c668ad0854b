import { mkdirSync, rmdirSync } from "node:fs"
import { systemCode } from "../util/errors.ts"

/** Empty directories that stand where nothing is to come into being. */
export interface Placeholders {
  /**
   * Makes the directories, so that something can be mounted over them: what is mounted over cannot be made, filled or
   * replaced. Those that exist by now, or cannot be made, are left alone. The function it returns takes them away once
   * nobody holds them any more; one that is not empty stays.
   */
  hold(paths: readonly string[]): () => void
}

/** One for an engine: commands side by side may need the same. */
export function createPlaceholders(): Placeholders {
  const holders = new Map<string, number>()

  function release(path: string): void {
    const rest = (holders.get(path) ?? 1) - 1
    if (rest > 0) {
      holders.set(path, rest)
      return
    }
    holders.delete(path)
    // Somebody outside may have put something into it, or taken it away.
    unless(["ENOTEMPTY", "EEXIST", "ENOENT", "ENOTDIR", "EBUSY", ...noRight], () => rmdirSync(path))
  }

  return {
    hold(paths) {
      const held = paths.filter((path) => {
        // Where it cannot be made here the command cannot make it either; one that is there has bounds of its own.
        return holders.has(path) || unless(["EEXIST", "ENOENT", "ENOTDIR", ...noRight], () => mkdirSync(path))
      })
      for (const path of held) holders.set(path, (holders.get(path) ?? 0) + 1)
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

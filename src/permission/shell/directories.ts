import { isAbsolute, join } from "node:path"
import type { Word } from "./words.ts"

/**
 * Directories in which a command may run: relative to the initial directory (`.`), absolute, or below `~`. Undefined if
 * they are unknown.
 */
export type Directories = readonly string[] | undefined

/** The directory in which every text starts. */
export const startDirectories: Directories = ["."]

/** Maximum number of possible directories. If there are more, the directories count as unknown. */
const maxDirectories = 8

/** Returns the union of two lists of directories. */
export function union(a: Directories, b: Directories): Directories {
  if (!a || !b) return undefined
  const all = [...new Set([...a, ...b])]
  return all.length > maxDirectories ? undefined : all
}

/**
 * Returns the possible directories after `cd` with these words. Follows only literal names without `..`, because the
 * effect of `..` depends on symbolic links.
 */
export function enter(from: Directories, words: readonly Word[]): Directories {
  const [target, ...more] = words.filter((word) => word.text !== "--")
  if (!target) return ["~"]
  if (more.length > 0 || target.dynamic || target.glob || target.text.startsWith("-")) return undefined
  if (target.text.split("/").includes("..")) return undefined
  if (target.base === "home") return [`~${target.tail ?? ""}`]
  const name = target.base === "directory" ? `.${target.tail ?? ""}` : target.text
  return compose(from, [name])
}

/** Resolves the directories `inner` relative to `outer`. */
export function compose(outer: Directories, inner: Directories): Directories {
  if (!inner) return undefined
  const fixed = inner.filter((directory) => isFixed(directory))
  if (fixed.length === inner.length) return inner
  if (!outer) return undefined
  const moving = inner.filter((directory) => !isFixed(directory))
  const joined = outer.flatMap((directory) =>
    moving.map((name) => (directory.startsWith("~") ? `${directory}/${name}` : join(directory, name))),
  )
  return union(fixed, joined)
}

function isFixed(directory: string): boolean {
  return isAbsolute(directory) || directory === "~" || directory.startsWith("~/")
}

import { isAbsolute, join } from "node:path"
import type { Word } from "./words.ts"

/**
 * The directories where a command may run: relative to where the text starts (`.`), absolute, or under `~`.
 * Undefined where they are not known.
 */
export type Directories = readonly string[] | undefined

/** The directory where every text starts. */
export const startDirectories: Directories = ["."]

/** The number of directories that are followed. */
const maxDirectories = 8

/** Returns all directories of both. */
export function union(a: Directories, b: Directories): Directories {
  if (!a || !b) return undefined
  const all = [...new Set([...a, ...b])]
  return all.length > maxDirectories ? undefined : all
}

/**
 * Returns where `cd` with these words leads. Only literal names without `..` are followed, because `..` depends on
 * links.
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

/** Returns the directories that `inner` names when it starts in `outer`. */
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

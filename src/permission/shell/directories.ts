import { isAbsolute, join } from "node:path"
import type { Word } from "./words.ts"

/**
 * Where a command may run: relative to where the text starts (`.`), absolute, or under `~`. Undefined: it cannot be
 * told.
 */
export type Directories = readonly string[] | undefined

/** Where every text starts. */
export const startDirectories: Directories = ["."]

/** More places than this are not followed. */
const maxDirectories = 8

/** All places of both. */
export function union(a: Directories, b: Directories): Directories {
  if (!a || !b) return undefined
  const all = [...new Set([...a, ...b])]
  return all.length > maxDirectories ? undefined : all
}

/** Where `cd` with these words leads to. Only literal names without `..` are followed: that is up to the links there. */
export function enter(from: Directories, words: readonly Word[]): Directories {
  const [target, ...more] = words.filter((word) => word.text !== "--")
  if (!target) return ["~"]
  if (more.length > 0 || target.dynamic || target.glob || target.text.startsWith("-")) return undefined
  if (target.text.split("/").includes("..")) return undefined
  if (target.base === "home") return [`~${target.tail ?? ""}`]
  const name = target.base === "directory" ? `.${target.tail ?? ""}` : target.text
  return compose(from, [name])
}

/** The places that `inner` names when it starts at `outer`. */
export function compose(outer: Directories, inner: Directories): Directories {
  if (!inner) return undefined
  const fixed = inner.filter((place) => isFixed(place))
  if (fixed.length === inner.length) return inner
  if (!outer) return undefined
  const moving = inner.filter((place) => !isFixed(place))
  const joined = outer.flatMap((place) =>
    moving.map((name) => (place.startsWith("~") ? `${place}/${name}` : join(place, name))),
  )
  return union(fixed, joined)
}

function isFixed(place: string): boolean {
  return isAbsolute(place) || place === "~" || place.startsWith("~/")
}

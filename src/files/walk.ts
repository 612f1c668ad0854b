import type { Dirent } from "node:fs"
import { readdir } from "node:fs/promises"
import { join } from "node:path"
import { throwIfAborted } from "../util/abort.ts"
import { systemCode } from "../util/errors.ts"
import { type IgnoreRules, rulesAbove } from "./ignore-rules.ts"

/** An entry below the root of a walk. */
export interface WalkEntry {
  /** Path relative to the root. Segments are separated by `/`. */
  path: string
  name: string
  /** Relative path of the parent directory. Empty for the root. */
  parent: string
  kind: "file" | "directory" | "link" | "other"
}

/**
 * Yields all entries below a directory, level by level. Sorts each directory by name, with subdirectories first. Skips
 * `.git`, ignored paths, and entries for which `skips` returns true. Does not follow links. Throws the signal's reason
 * if the signal aborts, and the system error if the root directory cannot be read.
 */
export async function* walk(
  root: string,
  options: {
    skips?(path: string, directory: boolean): boolean
    signal: AbortSignal
    /** Called with the relative path of each unreadable directory below the root. */
    onUnreadable(path: string): void
  },
): AsyncGenerator<WalkEntry> {
  const { rules } = await rulesAbove(root)
  const queue: { path: string; rules: IgnoreRules }[] = [{ path: "", rules }]
  for (let next = queue.shift(); next; next = queue.shift()) {
    throwIfAborted(options.signal)
    const directory = join(root, next.path)
    const found = await readDirectory(
      directory,
      next.path === "" ? undefined : () => options.onUnreadable(next.path),
    )
    const inside = await next.rules.enter(directory, new Set(found.map(({ name }) => name)))
    for (const entry of found) {
      throwIfAborted(options.signal)
      const path = next.path === "" ? entry.name : `${next.path}/${entry.name}`
      const isDirectory = entry.isDirectory()
      if (entry.name === ".git" || options.skips?.(path, isDirectory)) continue
      if (inside.ignores(join(root, path), isDirectory)) continue
      if (isDirectory) queue.push({ path, rules: inside })
      yield { path, name: entry.name, parent: next.path, kind: entryKind(entry) }
    }
  }
}

/**
 * Returns the sorted entries. If `onUnreadable` is given, returns an empty array for an unreadable or missing
 * directory.
 */
async function readDirectory(directory: string, onUnreadable: (() => void) | undefined): Promise<Dirent[]> {
  try {
    const found = await readdir(directory, { withFileTypes: true })
    return found.sort(
      (a, b) => Number(b.isDirectory()) - Number(a.isDirectory()) || (a.name < b.name ? -1 : 1),
    )
  } catch (error) {
    if (!onUnreadable || systemCode(error) === undefined) throw error
    onUnreadable()
    return []
  }
}

function entryKind(entry: Dirent): WalkEntry["kind"] {
  if (entry.isFile()) return "file"
  if (entry.isDirectory()) return "directory"
  return entry.isSymbolicLink() ? "link" : "other"
}

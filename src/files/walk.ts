import type { Dirent } from "node:fs"
import { readdir } from "node:fs/promises"
import { join } from "node:path"
import { throwIfAborted } from "../util/abort.ts"
import { systemCode } from "../util/errors.ts"
import { type IgnoreRules, rulesAbove } from "./ignore-rules.ts"

/** An entry below the root of a walk. */
export interface WalkEntry {
  /** Path relative to the root, with `/` between the parts. */
  path: string
  name: string
  /** The path of its directory, empty for the root. */
  parent: string
  kind: "file" | "directory" | "link" | "other"
}

/**
 * Yields all entries below a directory, level by level, in each directory first the directories, by name. Skips `.git`,
 * ignored paths, and directories that `skips` names. Does not follow links. Throws `AbortedError`, and system errors for
 * the root itself.
 */
export async function* walk(
  root: string,
  options: {
    skips?(path: string, directory: boolean): boolean
    signal: AbortSignal
    /** Called for each unreadable directory below the root. */
    onUnreadable(): void
  },
): AsyncGenerator<WalkEntry> {
  const { rules } = await rulesAbove(root)
  const queue: { path: string; rules: IgnoreRules }[] = [{ path: "", rules }]
  for (let next = queue.shift(); next; next = queue.shift()) {
    throwIfAborted(options.signal)
    const directory = join(root, next.path)
    const found = await readDirectory(directory, next.path === "" ? undefined : options.onUnreadable)
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

/** Returns the sorted entries. With `onUnreadable`, returns none for an unreadable or missing directory. */
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

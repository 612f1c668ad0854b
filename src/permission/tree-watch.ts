import { type Dirent, readdirSync, statSync } from "node:fs"
import { join } from "node:path"
import { systemCode } from "../util/errors.ts"
import { protectionOf } from "./protected-files.ts"

/** What lies below a directory, looked at before every command. */
export interface Tree {
  /** Protected files and directories; what lies in such a directory is not listed. Absolute. */
  marked: readonly string[]
  /** Every file and directory seen. */
  entries(): string[]
}

/** Looks below a directory, anew at each call. */
export interface TreeWatch {
  look(root: string): Tree
}

/** The nearest so many directories are looked at: about 5 µs each where nothing changed, 30 where something did. */
const maxDirectories = 1_000

/** A directory whose time is younger than this may change again without a new time. In milliseconds. */
const settledMs = 100

/** Places with thousands of directories that tools fill: of these only what lies in them directly is looked at. */
const heavy: ReadonlySet<string> = new Set(["node_modules", "target", "__pycache__", ".cache"])

/** What was found in one directory. */
interface Listing {
  mtimeMs: number
  settled: boolean
  names: string[]
  marked: string[]
  directories: string[]
}

/** Remembers what it saw, so that a directory is read again only when its time changed. Links are not followed. */
export function createTreeWatch(): TreeWatch {
  let known = new Map<string, Listing>()

  function list(directory: string, trail: string): Listing | undefined {
    const found = statSync(directory, { throwIfNoEntry: false })
    if (!found?.isDirectory()) return undefined
    const before = known.get(directory)
    if (before?.settled && before.mtimeMs === found.mtimeMs) return before
    const listing: Listing = {
      mtimeMs: found.mtimeMs,
      settled: Date.now() - found.mtimeMs > settledMs,
      names: [],
      marked: [],
      directories: [],
    }
    for (const entry of read(directory)) {
      listing.names.push(entry.name)
      // Two segments tell: no protected place is named by more.
      const protection = protectionOf(trail === "" ? entry.name : `${trail}/${entry.name}`, "edit")
      if (protection) listing.marked.push(entry.name)
      else if (entry.isDirectory() && !heavy.has(trail)) listing.directories.push(entry.name)
    }
    return listing
  }

  return {
    look(root) {
      const seen = new Map<string, Listing>()
      const waiting: { path: string; trail: string }[] = [{ path: root, trail: "" }]
      for (let next = waiting.shift(); next && seen.size < maxDirectories; next = waiting.shift()) {
        const listing = list(next.path, next.trail)
        if (!listing) continue
        seen.set(next.path, listing)
        for (const name of listing.directories) waiting.push({ path: join(next.path, name), trail: name })
      }
      known = seen
      return {
        marked: [...seen].flatMap(([path, { marked }]) => marked.map((name) => join(path, name))),
        entries: () => [...seen].flatMap(([path, { names }]) => names.map((name) => join(path, name))),
      }
    },
  }
}

/** What cannot be listed here cannot be read by the command either. */
function read(directory: string): Dirent[] {
  try {
    return readdirSync(directory, { withFileTypes: true })
  } catch (error) {
    if (["ENOENT", "ENOTDIR", "EACCES", "EPERM"].includes(systemCode(error) ?? "")) return []
    throw error
  }
}

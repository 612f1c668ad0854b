import { realpathSync } from "node:fs"
import { homedir } from "node:os"
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path"
import { systemCode } from "./errors.ts"

/** An absolute, normalised path. Relative ones start at `directory`, a leading `~` at the home directory. */
export function resolvePath(path: string, directory: string, home: string = homedir()): string {
  if (path === "~" || path.startsWith("~/")) return join(home, path.slice(1))
  return resolve(directory, path)
}

/**
 * The path with every link on the way followed, as far as it exists; what does not exist yet is appended as written.
 * Throws what the system throws for anything but a missing entry, such as a loop of links or a missing right.
 */
export function realPath(path: string): string {
  const missing: string[] = []
  let existing = resolve(path)
  for (;;) {
    try {
      return join(realpathSync.native(existing), ...missing)
    } catch (error) {
      const code = systemCode(error)
      if (code !== "ENOENT" && code !== "ENOTDIR") throw error
      const parent = dirname(existing)
      if (parent === existing) return join(existing, ...missing)
      missing.unshift(basename(existing))
      existing = parent
    }
  }
}

/** True if `path` is `directory` or lies in it. Both absolute; links are not followed: resolve them first. */
export function isInside(path: string, directory: string): boolean {
  const way = relative(directory, path)
  return way === "" || (way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way))
}

/** How a path is shown: relative to the root where it lies inside, else as it is. */
export function displayPath(path: string, root: string): string {
  return isInside(path, root) ? relative(root, path) || "." : path
}

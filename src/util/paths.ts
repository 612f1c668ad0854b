import { existsSync, lstatSync, readlinkSync, realpathSync } from "node:fs"
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path"
import { systemCode } from "./errors.ts"
import { homeDirectory } from "./home.ts"

/** An absolute, normalised path. Relative ones start at `directory`, a leading `~` at the home directory. */
export function resolvePath(path: string, directory: string, home: string = homeDirectory()): string {
  if (path === "~" || path.startsWith("~/")) return join(home, path.slice(1))
  return resolve(directory, path)
}

/**
 * The path with every link on the way followed, as far as it exists, also where a link leads to what is not there yet;
 * what does not exist is appended as written. Throws what the system throws for anything but a missing entry, such as a
 * loop of links or a missing right.
 */
export function realPath(path: string): string {
  return realPathBehind(path, { left: maxLinks })
}

/** So many links that lead to nothing are followed for one path, all told: what Linux allows of links of any kind. */
const maxLinks = 40

function realPathBehind(path: string, links: { left: number }): string {
  const missing: string[] = []
  let existing = resolve(path)
  for (;;) {
    if (mayBeThere(existing)) {
      try {
        return join(realpathSync.native(existing), ...missing)
      } catch (error) {
        const code = systemCode(error)
        if (code !== "ENOENT" && code !== "ENOTDIR") throw error
        const target = linkTarget(existing)
        if (target !== undefined) {
          if (links.left === 0) throw error
          links.left -= 1
          return join(behindLink(dirname(existing), target, links), ...missing)
        }
      }
    }
    const parent = dirname(existing)
    if (parent === existing) return join(existing, ...missing)
    missing.unshift(basename(existing))
    existing = parent
  }
}

/**
 * False where nothing has that name, not even a link that leads nowhere. It spares the errors of most paths that are not
 * there, each of which costs more than ten such looks; for whatever is not that plain, the system is asked again.
 */
function mayBeThere(path: string): boolean {
  if (existsSync(path)) return true
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined
  } catch {
    // Why it cannot be looked at is told by whoever resolves it.
    return true
  }
}

/** Where a link in the directory leads: `..` leaves the directory that a link before it leads to. */
function behindLink(directory: string, target: string, links: { left: number }): string {
  let real = isAbsolute(target) ? "/" : realPathBehind(directory, links)
  for (const segment of target.split("/")) {
    if (segment === "" || segment === ".") continue
    real = segment === ".." ? dirname(real) : realPathBehind(join(real, segment), links)
  }
  return real
}

/** What a link holds; undefined for whatever is no link. */
function linkTarget(path: string): string | undefined {
  try {
    return readlinkSync(path)
  } catch (error) {
    const code = systemCode(error)
    if (code === "EINVAL" || code === "ENOENT" || code === "ENOTDIR") return undefined
    throw error
  }
}

/** True if `path` is `directory` or lies in it. Both absolute; links are not followed: resolve them first. */
export function isInside(path: string, directory: string): boolean {
  if (isPlain(path) && isPlain(directory)) return path === directory || path.startsWith(`${directory}/`)
  const way = relative(directory, path)
  return way === "" || (way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way))
}

/** An absolute path that is sure to stand as `normalize` would leave it: then comparing texts tells as much. */
function isPlain(path: string): boolean {
  return path.startsWith("/") && !/\/\.{0,2}(?:\/|$)/.test(path)
}

/** How a path is shown: relative to the root where it lies inside, else as it is. */
export function displayPath(path: string, root: string): string {
  return isInside(path, root) ? relative(root, path) || "." : path
}

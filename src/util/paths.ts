import { lstatSync, readlinkSync, realpathSync } from "node:fs"
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
  return followPath(path).real
}

/** Where a path leads, and whether anything is there. */
export interface FollowedPath {
  real: string
  exists: boolean
}

/**
 * The same as {@link realPath}. `known` takes in what was found, of directories on the way too, and is believed: whoever
 * follows many paths at one moment keeps it for as long as that moment lasts.
 */
export function followPath(path: string, known?: Map<string, FollowedPath>): FollowedPath {
  return followBehind(path, { left: maxLinks }, known)
}

/** So many links that lead to nothing are followed for one path, all told: what Linux allows of links of any kind. */
const maxLinks = 40

function followBehind(
  path: string,
  links: { left: number },
  known?: Map<string, FollowedPath>,
): FollowedPath {
  const missing: string[] = []
  let existing = resolve(path)
  for (;;) {
    const found = known?.get(existing) ?? entryAt(existing, links)
    if (found) {
      known?.set(existing, found)
      return missing.length === 0 ? found : { real: join(found.real, ...missing), exists: false }
    }
    const parent = dirname(existing)
    if (parent === existing) return { real: join(existing, ...missing), exists: false }
    missing.unshift(basename(existing))
    existing = parent
  }
}

/** Nothing for what is missing. A link to what is not there yet leads to a name that is missing. */
function entryAt(path: string, links: { left: number }): FollowedPath | undefined {
  if (!mayBeThere(path)) return undefined
  try {
    return { real: realpathSync.native(path), exists: true }
  } catch (error) {
    const code = systemCode(error)
    if (code !== "ENOENT" && code !== "ENOTDIR") throw error
    const target = linkTarget(path)
    if (target === undefined) return undefined
    if (links.left === 0) throw error
    links.left -= 1
    return { real: behindLink(dirname(path), target, links), exists: false }
  }
}

/**
 * False where nothing has that name, not even a link that leads nowhere. It spares the errors of most paths that are not
 * there, each of which costs more than ten such looks; for whatever is not that plain, the system is asked again.
 */
function mayBeThere(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined
  } catch {
    // Why it cannot be looked at is told by whoever resolves it.
    return true
  }
}

/** Where a link in the directory leads: `..` leaves the directory that a link before it leads to. */
function behindLink(directory: string, target: string, links: { left: number }): string {
  let real = isAbsolute(target) ? "/" : followBehind(directory, links).real
  for (const segment of target.split("/")) {
    if (segment === "" || segment === ".") continue
    real = segment === ".." ? dirname(real) : followBehind(join(real, segment), links).real
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

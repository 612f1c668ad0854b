import { lstatSync, readlinkSync, realpathSync } from "node:fs"
import { homedir, userInfo } from "node:os"
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path"
import { systemCode } from "./errors.ts"

/** Returns the user's home directory. Ignores an empty `HOME`, which would mean the current directory. */
export function homeDirectory(): string {
  return homedir() || userInfo().homedir
}

/**
 * Returns an absolute, normalized path. Resolves a relative path against `directory` and replaces a leading `~` with
 * `home`.
 */
export function resolvePath(path: string, directory: string, home: string = homeDirectory()): string {
  if (path === "~" || path.startsWith("~/")) return join(home, path.slice(1))
  return resolve(directory, path)
}

/**
 * Returns the path with all links resolved, including links to missing targets. Appends, unchanged, the part of the
 * path that does not exist. Throws a system error if the path cannot be resolved, for example because of a link loop or
 * missing access. A missing entry is not an error.
 */
export function realPath(path: string): string {
  return followPath(path).real
}

/** The target of a path, and whether it exists. */
export interface FollowedPath {
  real: string
  exists: boolean
}

/**
 * Like {@link realPath}, but also returns whether the target exists. `known` caches results, including those of parent
 * directories. Cached results are not checked again, so use a cache only to resolve several paths at the same time.
 */
export function followPath(path: string, known?: Map<string, FollowedPath>): FollowedPath {
  return followBehind(path, { left: maxLinks }, known)
}

/**
 * Maximum number of links to missing targets that are followed for one path. Linux has the same limit for all links.
 */
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

/**
 * Returns the resolved entry, or undefined if the entry does not exist. For a link to a missing target, returns the
 * path of that target.
 */
function entryAt(path: string, links: { left: number }): FollowedPath | undefined {
  if (!mayExist(path)) return undefined
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
 * Returns false if the entry does not exist, and true for a broken link. This avoids exceptions for missing paths,
 * because one exception costs more than ten of these calls.
 */
function mayExist(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined
  } catch {
    // The caller resolves the path and reports the error.
    return true
  }
}

/**
 * Resolves a link target against the directory of the link. A `..` refers to the parent of the resolved path before it.
 */
function behindLink(directory: string, target: string, links: { left: number }): string {
  let real = isAbsolute(target) ? "/" : followBehind(directory, links).real
  for (const segment of target.split("/")) {
    if (segment === "" || segment === ".") continue
    real = segment === ".." ? dirname(real) : followBehind(join(real, segment), links).real
  }
  return real
}

/** Returns the target of a link, or undefined for other entries. */
function linkTarget(path: string): string | undefined {
  try {
    return readlinkSync(path)
  } catch (error) {
    const code = systemCode(error)
    if (code === "EINVAL" || code === "ENOENT" || code === "ENOTDIR") return undefined
    throw error
  }
}

/**
 * Returns true if `path` is `directory` or inside it. Both paths are absolute. Does not follow links: resolve links
 * first.
 */
export function isInside(path: string, directory: string): boolean {
  if (isPlain(path) && isPlain(directory)) return path === directory || path.startsWith(`${directory}/`)
  const rest = relative(directory, path)
  return rest === "" || (rest !== ".." && !rest.startsWith(`..${sep}`) && !isAbsolute(rest))
}

/** Returns true if the path is absolute and normalized, so that it can be compared as a string. */
function isPlain(path: string): boolean {
  return path.startsWith("/") && !/\/\.{0,2}(?:\/|$)/.test(path)
}

/**
 * Formats a path for display. Returns a relative path if the path is inside `root`, and the path itself if it is not.
 */
export function displayPath(path: string, root: string): string {
  return isInside(path, root) ? relative(root, path) || "." : path
}

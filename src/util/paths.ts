import { lstatSync, readlinkSync, realpathSync } from "node:fs"
import { homedir, userInfo } from "node:os"
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path"
import { systemCode } from "./errors.ts"

/** Returns the user's home directory. An empty `HOME` is ignored: it would mean the current directory. */
export function homeDirectory(): string {
  return homedir() || userInfo().homedir
}

/** Returns an absolute, normalized path. Relative paths start at `directory`, a leading `~` at the home directory. */
export function resolvePath(path: string, directory: string, home: string = homeDirectory()): string {
  if (path === "~" || path.startsWith("~/")) return join(home, path.slice(1))
  return resolve(directory, path)
}

/**
 * Returns the path with all links followed as far as it exists, including links to missing targets. Appends the missing
 * part as written. Throws system errors other than a missing entry, such as a link loop or missing access.
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
 * Like {@link realPath}. `known` caches results, including those of parent directories, and is trusted: keep it only
 * while several paths are followed at one moment.
 */
export function followPath(path: string, known?: Map<string, FollowedPath>): FollowedPath {
  return followBehind(path, { left: maxLinks }, known)
}

/** Links to missing targets that are followed for one path in total. Linux has the same limit for all links. */
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

/** Returns undefined if the entry is missing. A link to a missing target leads to a path that does not exist. */
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
 * Returns false if the entry does not exist, not even as a broken link. Avoids an exception for most missing paths: one exception costs
 * more than ten of these calls.
 */
function mayExist(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined
  } catch {
    // Resolving the path reports the error.
    return true
  }
}

/** Resolves a link in the directory. `..` applies to the target of the links before it. */
function behindLink(directory: string, target: string, links: { left: number }): string {
  let real = isAbsolute(target) ? "/" : followBehind(directory, links).real
  for (const segment of target.split("/")) {
    if (segment === "" || segment === ".") continue
    real = segment === ".." ? dirname(real) : followBehind(join(real, segment), links).real
  }
  return real
}

/** Returns the target of a link. Undefined for other entries. */
function linkTarget(path: string): string | undefined {
  try {
    return readlinkSync(path)
  } catch (error) {
    const code = systemCode(error)
    if (code === "EINVAL" || code === "ENOENT" || code === "ENOTDIR") return undefined
    throw error
  }
}

/** Returns true if `path` is `directory` or inside it. Both are absolute. Does not follow links: resolve them first. */
export function isInside(path: string, directory: string): boolean {
  if (isPlain(path) && isPlain(directory)) return path === directory || path.startsWith(`${directory}/`)
  const rest = relative(directory, path)
  return rest === "" || (rest !== ".." && !rest.startsWith(`..${sep}`) && !isAbsolute(rest))
}

/** Returns true for an absolute path that is certainly normalized, so that comparing strings is enough. */
function isPlain(path: string): boolean {
  return path.startsWith("/") && !/\/\.{0,2}(?:\/|$)/.test(path)
}

/** Formats a path for display: relative to the root if it is inside, otherwise unchanged. */
export function displayPath(path: string, root: string): string {
  return isInside(path, root) ? relative(root, path) || "." : path
}

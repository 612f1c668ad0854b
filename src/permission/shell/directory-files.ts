import type { Dirent } from "node:fs"
import { readdir } from "node:fs/promises"
import { basename, dirname, join, relative } from "node:path"
import { systemCode, TackleError } from "../../util/errors.ts"
import { isDirectory, readRegularFile } from "../../util/file-system.ts"
import { isInside, realPath } from "../../util/paths.ts"
import { wildcardMatch } from "../../util/wildcard.ts"
import type { Listing, ResolvedScope } from "../path-checks.ts"
import type { GivenOption } from "./arguments.ts"

/** Maximum number of entries to list in a directory and its subdirectories. */
export const maxEntries = 10_000

/** Maximum number of directories to list concurrently. */
const maxAtOnce = 32

const maxFound = 10

/** Selects which files in a directory a program reads. */
export interface RecursiveReading {
  /** Whether the program reads hidden files. */
  hidden: boolean
  /**
   * Patterns for the hidden files that the program reads if `hidden` is false, in addition to the hidden files that
   * ignore files re-include. Undefined if the program reads no hidden files. See {@link isUnhidden}.
   */
  unhidden?: readonly string[]
  /** Returns true if the program follows a link to this directory. If undefined, the program follows no links. */
  followsTo?: (directory: string) => boolean
  /** Selects files by name. If undefined, all files are selected. */
  selects?: (name: string) => boolean
  /**
   * Whether the files count as unknown if one of their names contains blanks, quotes or backslashes, or starts with a
   * dash.
   */
  plainNames?: boolean
  needsPermission: (path: string) => boolean
  listing: Listing
}

/**
 * Returns up to ten of the files below a directory for which `needsPermission` returns true. Returns undefined if the
 * directory has too many entries, or if `plainNames` is true and a selected name is not plain. Returns an empty list if
 * `directory` is a file.
 */
export async function filesNeedingPermission(
  directory: string,
  reading: RecursiveReading,
): Promise<string[] | undefined> {
  // Lists all files before judging any of them, because a directory with too many entries is not judged.
  const files = await filesBelow(directory, reading)
  if (!files) return undefined
  const found: string[] = []
  for (const path of files) {
    if (reading.selects?.(basename(path)) === false) continue
    if (reading.plainNames && !relative(directory, path).split("/").every(isPlainName)) return undefined
    if (reading.needsPermission(path)) found.push(path)
    if (found.length === maxFound) break
  }
  return found
}

/**
 * Returns the settings for a program that follows links. The targets of links are also judged. A target outside the
 * worktree needs permission.
 */
export function followingLinks(
  needsPermission: (path: string) => boolean,
  scope: ResolvedScope,
): Required<Pick<RecursiveReading, "followsTo" | "needsPermission">> {
  const inside = (path: string) => isInside(path, scope.realWorktree)
  return {
    followsTo: inside,
    needsPermission: (path) => {
      const followed = scope.follow(path)
      if (needsPermission(path) || "problem" in followed) return true
      return followed.real !== path && (!inside(followed.real) || needsPermission(followed.real))
    },
  }
}

/** Returns true for a name that `xargs` passes on unchanged and that cannot be mistaken for an option. */
function isPlainName(name: string): boolean {
  return !/^-|[\s'"\\]/.test(name)
}

async function filesBelow(
  directory: string,
  { hidden, unhidden, followsTo, selects, plainNames, listing }: RecursiveReading,
): Promise<string[] | undefined> {
  const files: string[] = []
  const waiting = [directory]
  const followed = new Set<string>()
  const takenIn = [...(unhidden ?? [])]
  let seen = 0
  while (waiting.length > 0) {
    const directories = waiting.splice(-maxAtOnce).reverse()
    const listed = await Promise.all(directories.map((each) => listDirectory(each, listing)))
    for (const [index, entries] of listed.entries()) {
      const current = directories[index] ?? directory
      seen += entries?.length ?? 0
      if (!entries || seen > maxEntries) return undefined
      if (unhidden && !hidden) takenIn.push(...takenInBy(current, entries))
      for (const entry of entries) {
        const path = join(current, entry.name)
        if (!hidden && entry.name.startsWith(".") && !isUnhidden(path, takenIn)) continue
        // Programs such as `find` also print the names of directories.
        if (plainNames && entry.isDirectory() && selects?.(entry.name) !== false && !isPlainName(entry.name))
          return undefined
        if (entry.isDirectory() || (entry.isSymbolicLink() && leadsOn(path, followsTo, followed)))
          waiting.push(path)
        else files.push(path)
      }
    }
  }
  return files
}

function takenInBy(directory: string, entries: readonly Dirent[]): string[] {
  const names = entries.map(({ name }) => name).filter((name) => ignoreFiles.includes(name))
  return names.length === 0 ? [] : unhiddenIn(directory, names)
}

/**
 * Returns true for a link to a directory if the program follows the link. Each directory is followed only once, because
 * links can form cycles.
 */
function leadsOn(path: string, followsTo: RecursiveReading["followsTo"], followed: Set<string>): boolean {
  if (!followsTo || !isDirectory(path)) return false
  const real = realPath(path)
  if (!followsTo(real) || followed.has(real)) return false
  followed.add(real)
  return true
}

const unlistable: ReadonlySet<string> = new Set(["ENOENT", "ENOTDIR", "EACCES", "EINVAL", "ESRCH"])

/**
 * Returns the entries of a directory, or an empty list if it cannot be listed. Returns undefined if the request has
 * reached its limit for listed entries.
 */
export async function listDirectory(directory: string, listing: Listing): Promise<Dirent[] | undefined> {
  try {
    const entries = listing.left > 0 ? await readdir(directory, { withFileTypes: true }) : []
    // An empty directory also counts as one entry.
    listing.left -= entries.length + 1
    return listing.left < 0 ? undefined : entries
  } catch (error) {
    const code = systemCode(error)
    // The command cannot search this directory either. The `/proc` directory of an ended process causes this error too.
    if (code !== undefined && unlistable.has(code)) return []
    throw error
  }
}

/** Returns patterns for the hidden files that ripgrep options include by name. See {@link isUnhidden}. */
export function unhiddenByOptions(options: readonly GivenOption[]): string[] {
  return options.flatMap(({ name, value }) => {
    const text = value?.text ?? ""
    if (globOptions.has(name)) return text.startsWith("!") ? [] : [overPaths(text)]
    return typeOptions.has(name) && typesWithSecrets.has(text) ? ["*"] : []
  })
}

const globOptions = new Set(["-g", "--glob", "--iglob"])
const typeOptions = new Set(["-t", "--type"])
/** ripgrep's file types that include `.env` (version 14.1, `--type-list`). `all` stands for every type. */
const typesWithSecrets = new Set(["sh", "all"])

/** Ignore files. A line that starts with `!` can re-include hidden files. */
const ignoreFiles: readonly string[] = [".gitignore", ".ignore", ".rgignore"]

/** Returns patterns for the hidden files that the ignore files in a directory re-include. */
function unhiddenIn(directory: string, names: readonly string[] = ignoreFiles): string[] {
  const found: string[] = []
  for (const name of names) {
    const text = readIgnoreFile(join(directory, name))
    const lines = text.split("\n").filter((line) => line.startsWith("!") && line.trim() !== "!")
    const globs = lines.length > maxReincluded ? ["*"] : lines.map((line) => line.slice(1).trimEnd())
    found.push(...globs.map(overPaths))
  }
  return found
}

/**
 * Maximum number of lines that are compared with each file. A file with more lines is treated as if it re-included
 * every file.
 */
const maxReincluded = 1_000

/**
 * Returns the patterns from {@link unhiddenIn} for all parent directories, up to the root of the worktree, and for
 * `.git/info/exclude`.
 */
export function unhiddenAbove(directory: string, worktree: string): string[] {
  const found: string[] = unhiddenIn(worktree, [".git/info/exclude"])
  for (let above = dirname(directory); isInside(above, worktree); above = dirname(above))
    found.push(...unhiddenIn(above))
  return found
}

/** Returns true if at least one of the patterns may match the file or directory. */
function isUnhidden(path: string, patterns: readonly string[]): boolean {
  return patterns.some((pattern) => wildcardMatch(path.toLowerCase(), pattern))
}

/**
 * Converts a glob to a wildcard pattern for absolute paths. The pattern matches in every directory, even if the glob is
 * anchored to one directory.
 */
function overPaths(glob: string): string {
  const wide = withoutSpan(withoutSpan(glob, "{", "}"), "[", "]").replaceAll(/\\(.)/gs, "$1")
  const segments = wide.split("/").filter((segment) => segment !== "")
  return `*/${segments.join("/").replaceAll("**/", "*").toLowerCase()}`
}

/** Replaces the text from the first opening bracket to the last closing bracket with `*`. */
export function withoutSpan(text: string, open: string, close: string): string {
  const [start, end] = [text.indexOf(open), text.lastIndexOf(close)]
  return start === -1 || end < start ? text : `${text.slice(0, start)}*${text.slice(end + 1)}`
}

/** Maximum size of an ignore file, in bytes. */
const maxIgnoreBytes = 1024 * 1024

function readIgnoreFile(path: string): string {
  try {
    return readRegularFile(path, maxIgnoreBytes)?.toString("utf8") ?? ""
  } catch (error) {
    // The lines of a pipe or of a very large file are unknown, so any file may be re-included.
    if (error instanceof TackleError) return "!*\n"
    // An unreadable ignore file re-includes nothing.
    if (systemCode(error) === undefined) throw error
    return ""
  }
}

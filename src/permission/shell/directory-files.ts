import { type Dirent, statSync } from "node:fs"
import { readdir, readFile } from "node:fs/promises"
import { dirname, join } from "node:path"
import { systemCode } from "../../util/errors.ts"
import { isInside, realPath } from "../../util/paths.ts"
import { wildcardMatch } from "../../util/wildcard.ts"
import type { ResolvedScope } from "../path-checks.ts"
import type { GivenOption } from "./arguments.ts"

/** A directory with more entries than this is not searched. */
export const maxEntries = 10_000

/** The number of directories that are listed at the same time. */
const maxAtOnce = 32

const maxFound = 10

/** The files of a directory that are read. */
export interface RecursiveReading {
  /** Files whose names start with a dot are read too. */
  hidden: boolean
  /**
   * Of the hidden files only these are read, and those that ignore files include again. Patterns as for {@link
   * isUnhidden}.
   */
  unhidden?: readonly string[]
  /** Links are followed. A link to a directory is followed if this returns true. */
  followsTo?: (directory: string) => boolean
  needsPermission: (path: string) => boolean
}

/**
 * Returns the files below a directory for which `needsPermission` is true, at most ten. Undefined where the
 * directory has too many entries. A file contains none.
 */
export async function filesNeedingPermission(
  directory: string,
  reading: RecursiveReading,
): Promise<string[] | undefined> {
  // All files are listed before one is judged: a directory with too many needs no judgement.
  const files = await filesBelow(directory, reading)
  if (!files) return undefined
  const found: string[] = []
  for (const path of files) {
    if (reading.needsPermission(path)) found.push(path)
    if (found.length === maxFound) break
  }
  return found
}

/**
 * The settings for a program that follows links: the target of a link is judged too, and a target outside the
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

async function filesBelow(
  directory: string,
  { hidden, unhidden, followsTo }: RecursiveReading,
): Promise<string[] | undefined> {
  const files: string[] = []
  const waiting = [directory]
  const followed = new Set<string>()
  const takenIn = [...(unhidden ?? [])]
  let seen = 0
  while (waiting.length > 0) {
    const directories = waiting.splice(-maxAtOnce).reverse()
    const listed = await Promise.all(directories.map(directoryEntries))
    for (const [index, entries] of listed.entries()) {
      const current = directories[index] ?? directory
      seen += entries.length
      if (seen > maxEntries) return undefined
      if (unhidden && !hidden) takenIn.push(...(await takenInBy(current, entries)))
      for (const entry of entries) {
        const path = join(current, entry.name)
        if (!hidden && entry.name.startsWith(".") && !isUnhidden(path, takenIn)) continue
        if (entry.isDirectory() || (entry.isSymbolicLink() && leadsOn(path, followsTo, followed)))
          waiting.push(path)
        else files.push(path)
      }
    }
  }
  return files
}

async function takenInBy(directory: string, entries: readonly Dirent[]): Promise<string[]> {
  const names = entries.map(({ name }) => name).filter((name) => ignoreFiles.includes(name))
  return names.length === 0 ? [] : unhiddenIn(directory, names)
}

/**
 * True for a link to a directory that is followed. Each directory is followed once, because links may lead in
 * circles.
 */
function leadsOn(path: string, followsTo: RecursiveReading["followsTo"], followed: Set<string>): boolean {
  if (!followsTo || statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) return false
  const real = realPath(path)
  if (!followsTo(real) || followed.has(real)) return false
  followed.add(real)
  return true
}

const unlistable: ReadonlySet<string> = new Set(["ENOENT", "ENOTDIR", "EACCES", "EINVAL", "ESRCH"])

async function directoryEntries(directory: string): Promise<Dirent[]> {
  try {
    return await readdir(directory, { withFileTypes: true })
  } catch (error) {
    const code = systemCode(error)
    // The command cannot search such a directory either. The directory of a process that ended is invalid.
    if (code !== undefined && unlistable.has(code)) return []
    throw error
  }
}

/** Patterns for the hidden files that options of ripgrep include by name. See {@link isUnhidden}. */
export function unhiddenByOptions(options: readonly GivenOption[]): string[] {
  return options.flatMap(({ name, value }) => {
    const text = value?.text ?? ""
    if (globOptions.has(name)) return text.startsWith("!") ? [] : [overPaths(text)]
    return typeOptions.has(name) && typesWithSecrets.has(text) ? ["*"] : []
  })
}

const globOptions = new Set(["-g", "--glob", "--iglob"])
const typeOptions = new Set(["-t", "--type"])
/** Types of ripgrep (14.1, `--type-list`) with `.env` among their files; `all` is every type. */
const typesWithSecrets = new Set(["sh", "all"])

/** Files in which a line that starts with `!` includes hidden files. */
export const ignoreFiles: readonly string[] = [".gitignore", ".ignore", ".rgignore"]

/** Patterns for the hidden files that the ignore files of a directory include again. */
export async function unhiddenIn(
  directory: string,
  names: readonly string[] = ignoreFiles,
): Promise<string[]> {
  const found: string[] = []
  for (const name of names) {
    const text = await readFile(join(directory, name), "utf8").catch(ifUnreadable)
    for (const [, glob = ""] of text.matchAll(/^!(.+?)\s*$/gm)) found.push(overPaths(glob))
  }
  return found
}

/** The same for all directories above, up to the root of the worktree. */
export async function unhiddenAbove(directory: string, worktree: string): Promise<string[]> {
  const found: string[] = await unhiddenIn(worktree, [".git/info/exclude"])
  for (let above = dirname(directory); isInside(above, worktree); above = dirname(above))
    found.push(...(await unhiddenIn(above)))
  return found
}

/** True where one of the patterns may include the file or directory. */
export function isUnhidden(path: string, patterns: readonly string[]): boolean {
  return patterns.some((pattern) => wildcardMatch(path.toLowerCase(), pattern))
}

/** Returns a glob as a wildcard for absolute paths, wherever the glob is anchored. */
function overPaths(glob: string): string {
  const wide = glob
    .replace(/\{.*\}/s, "*")
    .replace(/\[.*\]/s, "*")
    .replaceAll(/\\(.)/gs, "$1")
  return `*/${wide.replace(/^\/+/, "").replace(/\/+$/, "").replaceAll("**/", "*").toLowerCase()}`
}

function ifUnreadable(error: unknown): string {
  // A missing or unreadable file includes nothing.
  if (systemCode(error) === undefined) throw error
  return ""
}

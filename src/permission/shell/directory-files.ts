import { type Dirent, statSync } from "node:fs"
import { readdir, readFile } from "node:fs/promises"
import { dirname, join } from "node:path"
import { systemCode } from "../../util/errors.ts"
import { isInside, realPath } from "../../util/paths.ts"
import { wildcardMatch } from "../../util/wildcard.ts"
import type { ResolvedScope } from "../path-checks.ts"
import type { GivenOption } from "./arguments.ts"

/** A directory with more entries than this is not looked through. */
export const maxEntries = 10_000

/** So many directories are listed side by side: one after the other each would wait for the one before. */
const maxAtOnce = 32

const maxFound = 10

/** What is read of a directory. */
export interface RecursiveReading {
  /** Names that start with a dot are read, too. */
  hidden: boolean
  /** Of those only these, and what ignore files take in again: patterns as {@link isUnhidden} takes them. */
  unhidden?: readonly string[]
  /** Links are followed; those to directories for which it holds are gone through. */
  followsTo?: (directory: string) => boolean
  needsPermission: (path: string) => boolean
}

/**
 * The files below a directory for which `needsPermission` holds, at most ten; undefined where there are too many entries to
 * look at. What is no directory has none.
 */
export async function filesNeedingPermission(
  directory: string,
  reading: RecursiveReading,
): Promise<string[] | undefined> {
  // All are listed before one is judged: where they are too many, none has to be.
  const files = await filesBelow(directory, reading)
  if (!files) return undefined
  const found: string[] = []
  for (const path of files) {
    if (reading.needsPermission(path)) found.push(path)
    if (found.length === maxFound) break
  }
  return found
}

/** The same for a program that follows links: what lies behind one is judged, too, and what lies outside needs leave. */
export function followingLinks(
  needsPermission: (path: string) => boolean,
  place: ResolvedScope,
): Required<Pick<RecursiveReading, "followsTo" | "needsPermission">> {
  const inside = (path: string) => isInside(path, place.realWorktree)
  return {
    followsTo: inside,
    needsPermission: (path) => {
      const followed = place.follow(path)
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
    const places = waiting.splice(-maxAtOnce).reverse()
    const listed = await Promise.all(places.map(directoryEntries))
    for (const [index, entries] of listed.entries()) {
      const place = places[index] ?? directory
      seen += entries.length
      if (seen > maxEntries) return undefined
      if (unhidden && !hidden) takenIn.push(...(await takenInBy(place, entries)))
      for (const entry of entries) {
        const path = join(place, entry.name)
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

/** True for a link to a directory that is to be gone through, once for each directory: links may lead in circles. */
function leadsOn(path: string, followsTo: RecursiveReading["followsTo"], followed: Set<string>): boolean {
  if (!followsTo || statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) return false
  const real = realPath(path)
  if (!followsTo(real) || followed.has(real)) return false
  followed.add(real)
  return true
}

async function directoryEntries(directory: string): Promise<Dirent[]> {
  try {
    return await readdir(directory, { withFileTypes: true })
  } catch (error) {
    const code = systemCode(error)
    // What cannot be listed cannot be searched by the command either.
    if (code === "ENOENT" || code === "ENOTDIR" || code === "EACCES") return []
    throw error
  }
}

/**
 * Patterns over the files that ripgrep is told to search by name: those it takes although they are hidden. As
 * {@link isUnhidden} takes them.
 */
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

/** Files whose lines with a `!` in front take hidden files in. */
export const ignoreFiles: readonly string[] = [".gitignore", ".ignore", ".rgignore"]

/** Patterns over what the ignore files of a directory take in again although it is hidden. */
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

/** The same of all directories above one, up to the root of the worktree. */
export async function unhiddenAbove(directory: string, worktree: string): Promise<string[]> {
  const found: string[] = await unhiddenIn(worktree, [".git/info/exclude"])
  for (let above = dirname(directory); isInside(above, worktree); above = dirname(above))
    found.push(...(await unhiddenIn(above)))
  return found
}

/** True where one of the patterns takes the file or directory in. It may say so too often, and never too rarely. */
export function isUnhidden(path: string, patterns: readonly string[]): boolean {
  return patterns.some((pattern) => wildcardMatch(path.toLowerCase(), pattern))
}

/** A glob as a wildcard over absolute paths, wherever it is anchored. */
function overPaths(glob: string): string {
  const wide = glob
    .replace(/\{.*\}/s, "*")
    .replace(/\[.*\]/s, "*")
    .replaceAll(/\\(.)/gs, "$1")
  return `*/${wide.replace(/^\/+/, "").replace(/\/+$/, "").replaceAll("**/", "*").toLowerCase()}`
}

function ifUnreadable(error: unknown): string {
  // What is not there or cannot be read takes nothing in.
  if (systemCode(error) === undefined) throw error
  return ""
}

import { type Dirent, statSync } from "node:fs"
import { readdir } from "node:fs/promises"
import { join } from "node:path"
import { systemCode } from "../../util/errors.ts"
import { isInside, realPath } from "../../util/paths.ts"
import type { ResolvedScope } from "../path-checks.ts"
import { ignoreFiles, isUnhidden, unhiddenIn } from "./unhidden.ts"

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
  needsLeave: (path: string) => boolean
}

/**
 * The files below a directory for which `needsLeave` holds, at most ten; undefined where there are too many entries to
 * look at. What is no directory has none.
 */
export async function filesNeedingLeave(
  directory: string,
  reading: RecursiveReading,
): Promise<string[] | undefined> {
  // All are listed before one is judged: where they are too many, none has to be.
  const files = await filesBelow(directory, reading)
  if (!files) return undefined
  const found: string[] = []
  for (const path of files) {
    if (reading.needsLeave(path)) found.push(path)
    if (found.length === maxFound) break
  }
  return found
}

/** The same for a program that follows links: what lies behind one is judged, too, and what lies outside needs leave. */
export function followingLinks(
  needsLeave: (path: string) => boolean,
  place: ResolvedScope,
): Required<Pick<RecursiveReading, "followsTo" | "needsLeave">> {
  const inside = (path: string) => isInside(path, place.realWorktree)
  return {
    followsTo: inside,
    needsLeave: (path) => {
      const followed = place.follow(path)
      if (needsLeave(path) || "problem" in followed) return true
      return followed.real !== path && (!inside(followed.real) || needsLeave(followed.real))
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

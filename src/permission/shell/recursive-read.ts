import type { Dirent } from "node:fs"
import { readdir } from "node:fs/promises"
import { join } from "node:path"
import { systemCode } from "../../util/errors.ts"

/** A directory with more entries than this is not looked through. */
const maxEntries = 10_000

/** So many directories are listed side by side: one after the other each would wait for the one before. */
const maxAtOnce = 32

const maxFound = 10

/**
 * The files below a directory for which `needsLeave` holds, at most ten; undefined where there are too many entries to
 * look at. Links are not followed. What is no directory has none.
 */
export async function filesNeedingLeave(
  directory: string,
  options: { hidden: boolean; needsLeave: (path: string) => boolean },
): Promise<string[] | undefined> {
  // All are listed before one is judged: where they are too many, none has to be.
  const files = await filesBelow(directory, options.hidden)
  if (!files) return undefined
  const found: string[] = []
  for (const path of files) {
    if (options.needsLeave(path)) found.push(path)
    if (found.length === maxFound) break
  }
  return found
}

async function filesBelow(directory: string, hidden: boolean): Promise<string[] | undefined> {
  const files: string[] = []
  const waiting = [directory]
  let seen = 0
  while (waiting.length > 0) {
    const places = waiting.splice(-maxAtOnce).reverse()
    const listed = await Promise.all(places.map(entriesOf))
    for (const [index, entries] of listed.entries()) {
      seen += entries.length
      if (seen > maxEntries) return undefined
      for (const entry of entries) {
        if (!hidden && entry.name.startsWith(".")) continue
        const path = join(places[index] ?? directory, entry.name)
        if (entry.isDirectory()) waiting.push(path)
        else files.push(path)
      }
    }
  }
  return files
}

async function entriesOf(directory: string): Promise<Dirent[]> {
  try {
    return await readdir(directory, { withFileTypes: true })
  } catch (error) {
    const code = systemCode(error)
    // What cannot be listed cannot be searched by the command either.
    if (code === "ENOENT" || code === "ENOTDIR" || code === "EACCES") return []
    throw error
  }
}

import type { Dirent } from "node:fs"
import { readdir } from "node:fs/promises"
import { join } from "node:path"
import { systemCode } from "../../util/errors.ts"

/** A directory with more entries than this is not looked through. */
const maxEntries = 10_000

/**
 * The files below a directory for which `needsLeave` holds, at most ten; undefined where there are too many entries to
 * look at. Links are not followed. What is no directory has none.
 */
export async function filesNeedingLeave(
  directory: string,
  options: { hidden: boolean; needsLeave: (path: string) => boolean },
): Promise<string[] | undefined> {
  const found: string[] = []
  const waiting = [directory]
  let seen = 0
  for (let place = waiting.pop(); place !== undefined; place = waiting.pop()) {
    const entries = await entriesOf(place)
    seen += entries.length
    if (seen > maxEntries) return undefined
    for (const entry of entries) {
      if (!options.hidden && entry.name.startsWith(".")) continue
      const path = join(place, entry.name)
      if (entry.isDirectory()) waiting.push(path)
      else if (found.length < maxFound && options.needsLeave(path)) found.push(path)
    }
  }
  return found
}

const maxFound = 10

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

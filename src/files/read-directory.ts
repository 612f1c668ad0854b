import { readdir, stat } from "node:fs/promises"
import { join } from "node:path"
import { throwIfAborted } from "../util/abort.ts"
import { systemCode } from "../util/errors.ts"
import { maxPageBytes } from "./read-text.ts"
import { showName } from "./show-name.ts"

/** A part of a directory's entries. */
export interface DirectoryPage {
  /** Sorted by name; directories, and links to such, end with `/`. */
  entries: string[]
  total: number
}

/** The entries from `offset` on, as many as are asked for and fit in a page's bytes. Throws what the system throws. */
export async function readDirectoryPage(
  path: string,
  options: { offset: number; limit: number; signal: AbortSignal },
): Promise<DirectoryPage> {
  const found = await readdir(path, { withFileTypes: true })
  found.sort((a, b) => (a.name < b.name ? -1 : 1))

  const entries: string[] = []
  let bytes = 0
  for (const entry of found.slice(options.offset, options.offset + options.limit)) {
    throwIfAborted(options.signal)
    const directory =
      entry.isDirectory() || (entry.isSymbolicLink() && (await leadsToDirectory(join(path, entry.name))))
    const shown = showName(directory ? `${entry.name}/` : entry.name)
    bytes += Buffer.byteLength(shown) + 1
    if (bytes > maxPageBytes) break
    entries.push(shown)
  }
  return { entries, total: found.length }
}

/** False for a link that leads nowhere. */
async function leadsToDirectory(link: string): Promise<boolean> {
  try {
    return (await stat(link)).isDirectory()
  } catch (error) {
    if (systemCode(error) === undefined) throw error
    return false
  }
}

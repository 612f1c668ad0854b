import { basename, join } from "node:path"
import { walk } from "../files/walk.ts"

/**
 * Finds files by letters in their paths. Returns at most `limit` (default: 20) paths relative to the directory, best
 * match first. Throws the signal's reason if the signal aborts.
 */
export type FindFiles = (
  query: string,
  options?: { limit?: number; signal?: AbortSignal },
) => Promise<string[]>

/** Maximum number of files that are compared with a query. */
const maxFiles = 50_000

/** Time in milliseconds for which a list of files is reused while the user types several letters. */
const keptMs = 2_000

/**
 * Creates a function that finds files. The function omits ignored files and files for which `mayRead` returns false.
 */
export function createFileFinder(directory: string, mayRead: (path: string) => Promise<boolean>): FindFiles {
  let files: Promise<string[]> | undefined
  let expires = 0

  function listFiles(): Promise<string[]> {
    if (!files || Date.now() > expires) files = filesBelow(directory)
    expires = Date.now() + keptMs
    return files
  }

  return async (query, { limit = 20, signal } = {}) => {
    const letters = query.toLowerCase()
    const scored = (await listFiles()).flatMap((path) => {
      const score = scoreOf(path, letters)
      return score === undefined ? [] : [{ path, score }]
    })
    scored.sort((a, b) => a.score - b.score || a.path.length - b.path.length || (a.path < b.path ? -1 : 1))
    const found: string[] = []
    for (const { path } of scored) {
      signal?.throwIfAborted()
      if (found.length >= limit) break
      if (await mayRead(join(directory, path))) found.push(path)
    }
    return found
  }
}

async function filesBelow(directory: string): Promise<string[]> {
  const files: string[] = []
  const signal = new AbortController().signal
  for await (const { path, kind } of walk(directory, { signal, onUnreadable: () => {} })) {
    if (kind === "file") files.push(path)
    if (files.length === maxFiles) break
  }
  return files
}

/**
 * Returns a lower number for a better match, and undefined if the path does not contain the letters in their order. The
 * best matches are at the beginning of the file name, with adjacent letters.
 */
function scoreOf(path: string, letters: string): number | undefined {
  const text = path.toLowerCase()
  const name = basename(text)
  if (name === letters) return 0
  if (name.startsWith(letters)) return 1
  if (name.includes(letters)) return 2
  if (text.includes(letters)) return 3
  const inName = spanOf(name, letters)
  if (inName !== undefined) return 4 + inName
  const inPath = spanOf(text, letters)
  return inPath === undefined ? undefined : 1_000 + inPath
}

/**
 * Returns the distance between the first and the last letter, or undefined if the text does not contain the letters in
 * their order.
 */
function spanOf(text: string, letters: string): number | undefined {
  let start = -1
  let at = -1
  for (const letter of letters) {
    at = text.indexOf(letter, at + 1)
    if (at < 0) return undefined
    if (start < 0) start = at
  }
  return at - start
}

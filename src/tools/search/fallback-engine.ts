import { basename, join } from "node:path"
import { fileKind, sampleBytes } from "../../files/file-kind.ts"
import { createLineSplitter, cutText } from "../../files/line-splitter.ts"
import { type OpenFile, openFile, readChunks, readStart } from "../../files/open-file.ts"
import { walk } from "../../files/walk.ts"
import { throwIfAborted } from "../../util/abort.ts"
import { TackleError } from "../../util/errors.ts"
import { realPath } from "../../util/paths.ts"
import { createLineMatcher } from "./line-matcher.ts"
import type { FileMatches, FileQuery, SearchEngine, TextQuery } from "./search-engine.ts"

/** Characters of a line that the expression gets to see. */
const maxSearchedLength = 10_000

/** Searches without any other program: slower than ripgrep, with the regular expressions of JavaScript. */
export function createFallbackEngine(): SearchEngine {
  return {
    files,
    async *search(query) {
      const match = createLineMatcher(query.pattern)
      for await (const path of files(query)) {
        const found = await searchFile(path, match, query)
        if (found.count > 0) yield found
      }
    },
  }
}

async function* files(query: FileQuery): AsyncGenerator<string> {
  throwIfAborted(query.signal)
  const { root } = query
  if (root.kind === "file") {
    if (query.accepts(basename(root.path))) yield root.path
    return
  }
  for await (const { path, kind } of walk(root.path, query)) {
    if (kind === "file" && query.accepts(path)) yield join(root.path, path)
  }
}

async function searchFile(
  path: string,
  match: (lines: readonly string[]) => number[],
  query: TextQuery,
): Promise<FileMatches> {
  const found: FileMatches = { path, lines: [], count: 0 }
  const handle = await openIfPossible(path, query)
  if (!handle) return found
  try {
    const kind = fileKind(path, readStart(handle, sampleBytes))
    if (kind.kind !== "text") return found

    let batch: string[] = []
    let first = 1
    const splitter = createLineSplitter(maxSearchedLength, (line) => batch.push(line))
    const flush = () => {
      for (const index of match(batch)) {
        if (found.count >= query.maxCount) return
        found.count += 1
        const text = cutText(batch[index] ?? "", query.maxLineLength)
        if (found.lines.length < query.maxLines) found.lines.push({ line: first + index, text })
      }
      first += batch.length
      batch = []
    }

    const decoder = new TextDecoder(kind.encoding)
    for await (const chunk of readChunks(handle, query.signal)) {
      if (kind.encoding === "utf-8" && chunk.includes(0)) return { path, lines: [], count: 0 }
      splitter.push(decoder.decode(chunk, { stream: true }))
      flush()
      if (found.count >= query.maxCount) return found
    }
    splitter.push(decoder.decode())
    splitter.end()
    flush()
    return found
  } finally {
    handle.close()
  }
}

/** A file that went away or may not be read does not end the search of the others. */
async function openIfPossible(path: string, query: TextQuery): Promise<OpenFile | undefined> {
  try {
    return await openFile(path, realPath(path))
  } catch (error) {
    if (!TackleError.isInstance(error)) throw error
    query.onUnreadable()
    return undefined
  }
}

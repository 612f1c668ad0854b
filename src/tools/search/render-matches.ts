import { maxPageBytes } from "../../files/read-page.ts"
import { sortNewestFirst } from "./newest-first.ts"
import type { FileMatches } from "./search-engine.ts"
import { showPath } from "./search-root.ts"

/** What the model reads, how many lines of it are matches, and how many were found. */
export interface RenderedMatches {
  output: string
  shown: number
  count: number
}

/**
 * Matches grouped by file, the newest file first, until `maxLines` or a page's bytes are reached. `complete`: the
 * search came to its end, so that the totals are no lower bounds.
 */
export async function renderMatches(
  files: readonly FileMatches[],
  options: { directory: string; maxLines: number; complete: boolean },
): Promise<RenderedMatches> {
  const count = files.reduce((sum, file) => sum + file.count, 0)
  if (count === 0) return { output: "No matches found", shown: 0, count }

  const groups: string[] = []
  let shown = 0
  let bytes = 0
  for (const file of await sortNewestFirst(files)) {
    const group = [showPath(file.path, options.directory)]
    for (const { line, text } of file.lines) {
      const rendered = `  ${line}: ${text}`
      bytes += Buffer.byteLength(rendered) + 1
      if (shown >= options.maxLines || bytes > maxPageBytes) break
      group.push(rendered)
      shown += 1
    }
    if (group.length === 1) break
    groups.push(group.join("\n"))
  }
  return {
    output: `${heading(files.length, count, shown, options.complete)}\n\n${groups.join("\n\n")}`,
    shown,
    count,
  }
}

function heading(files: number, count: number, shown: number, complete: boolean): string {
  const where = files === 1 ? "1 file" : `${files} files`
  if (shown === count && complete) return `${count} ${count === 1 ? "match" : "matches"} in ${where}`
  const total = complete ? `${count} matches in ${where}` : `more than ${count} matches`
  return `Showing ${shown} of ${total}, newest files first. To see others narrow the pattern, path or include.`
}

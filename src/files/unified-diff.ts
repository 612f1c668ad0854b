/** Maximum number of characters per text. Larger texts take seconds to compare, and no user would read the diff. */
const maxTextLength = 1_000_000

/** Maximum number of characters of a diff. A diff of this length fits in a permission request and in a stored part. */
const maxDiffLength = 20_000

/** Maximum number of changed lines. The time grows with their square: 1,000 lines take about 0.15 s. */
const maxChangedLines = 1_000

/** Two states of a file. `before` is undefined for a new file, and `after` for a deleted file. */
export interface DiffInput {
  path: string
  before: string | undefined
  after: string | undefined
}

/**
 * Returns a unified diff with three lines of context. Cuts a diff of more than 20,000 characters, and adds a note at
 * its end. If either text has more than a million characters, returns only a line with the lengths of both texts. If
 * the texts have too little in common, returns only the new text.
 */
export async function unifiedDiff(input: DiffInput): Promise<string> {
  const { path } = input
  const [before, after] = [input.before ?? "", input.after ?? ""]
  if (Math.max(before.length, after.length) > maxTextLength) {
    return `[${path} is too large to compare: the length changes from ${before.length} to ${after.length} characters]\n`
  }
  const { createTwoFilesPatch, FILE_HEADERS_ONLY } = await import("diff")
  const from = input.before === undefined ? "/dev/null" : path
  const to = input.after === undefined ? "/dev/null" : path
  // The limit on changed lines does not apply to a created or deleted file, because it needs no comparison.
  const limit = before === "" || after === "" ? Number.MAX_SAFE_INTEGER : maxChangedLines
  const patch = createTwoFilesPatch(from, to, before, after, undefined, undefined, {
    context: 3,
    maxEditLength: limit,
    // Removes the lines that `diff` adds at the start: the `Index:` line and the line of equals signs.
    headerOptions: FILE_HEADERS_ONLY,
  })
  return cut(patch ?? newTextAlone(path, after))
}

/** Returns false if the diff shows only part of the change. Only a notice about omitted text starts with a bracket. */
export function isWholeDiff(diff: string): boolean {
  return !/^\[/m.test(diff)
}

function newTextAlone(path: string, after: string): string {
  return `[${path} changes almost everywhere. This is its new text:]\n${after.replace(/^/gm, "+")}`
}

function cut(diff: string): string {
  if (diff.length <= maxDiffLength) return diff
  const end = diff.lastIndexOf("\n", maxDiffLength) + 1 || maxDiffLength
  return `${diff.slice(0, end)}[The diff is cut here: ${end} of ${diff.length} characters are shown]\n`
}

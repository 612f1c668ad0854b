/** Limit in characters per side. Larger texts take seconds to compare, and the diff would not be read. */
const maxTextLength = 1_000_000

/** Limit in characters. Fits a permission request and a stored part. */
const maxDiffLength = 20_000

/** Time grows with the square of the changed lines: 1,000 take about 0.15 s. */
const maxChangedLines = 1_000

/** Two states of a file. `before` is undefined for a new file, `after` for a deleted one. */
export interface DiffInput {
  path: string
  before: string | undefined
  after: string | undefined
}

/**
 * Returns a unified diff with three lines of context and at most 20,000 characters. For texts over a million characters,
 * returns one line with their sizes; for texts with too little in common, the new text alone.
 */
export async function unifiedDiff(input: DiffInput): Promise<string> {
  const { path } = input
  const [before, after] = [input.before ?? "", input.after ?? ""]
  if (Math.max(before.length, after.length) > maxTextLength) {
    return `[${path} is too large to compare: ${before.length} characters become ${after.length}]\n`
  }
  const { createTwoFilesPatch, FILE_HEADERS_ONLY } = await import("diff")
  const from = input.before === undefined ? "/dev/null" : path
  const to = input.after === undefined ? "/dev/null" : path
  // A new or deleted file needs no comparison.
  const limit = before === "" || after === "" ? Number.MAX_SAFE_INTEGER : maxChangedLines
  const patch = createTwoFilesPatch(from, to, before, after, undefined, undefined, {
    context: 3,
    maxEditLength: limit,
    // Without the index line and the line of equals signs.
    headerOptions: FILE_HEADERS_ONLY,
  })
  return cut(patch ?? newTextAlone(path, after))
}

/** Returns false if the diff shows only a part of the change. Only such notices start with a bracket. */
export function isWholeDiff(diff: string): boolean {
  return !/^\[/m.test(diff)
}

function newTextAlone(path: string, after: string): string {
  return `[${path} changes almost everywhere: this is its new text]\n${after.replace(/^/gm, "+")}`
}

function cut(diff: string): string {
  if (diff.length <= maxDiffLength) return diff
  const end = diff.lastIndexOf("\n", maxDiffLength) + 1 || maxDiffLength
  return `${diff.slice(0, end)}[cut here: ${end} of ${diff.length} characters are shown]\n`
}

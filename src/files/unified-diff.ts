/** Above this many characters on either side no lines are compared: it would take seconds and nobody would read it. */
const maxTextLength = 1_000_000

/** What a permission request and a stored part can carry, in characters. */
const maxDiffLength = 20_000

/** Past this many changed lines the time grows with their square: 1,000 take about 0.15 s. */
const maxChangedLines = 1_000

/** Two states of one file and its path as the reader is to see it. `before` undefined: it is new; `after`: it goes. */
export interface DiffInput {
  path: string
  before: string | undefined
  after: string | undefined
}

/**
 * A unified diff with three lines of context, at most 20,000 characters and a mark where it was cut. Texts over a
 * million characters give one line with their sizes; texts with too little in common give the new one alone.
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
  // All lines added or all removed is quick to find out, however many they are.
  const limit = before === "" || after === "" ? Number.MAX_SAFE_INTEGER : maxChangedLines
  const patch = createTwoFilesPatch(from, to, before, after, undefined, undefined, {
    context: 3,
    maxEditLength: limit,
    // An index line and one of equals signs say nothing that the two names do not.
    headerOptions: FILE_HEADERS_ONLY,
  })
  return cut(patch ?? newTextAlone(path, after))
}

/** False where a part of the change does not show: it was cut, or only one side is there. Lines of files never begin so. */
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

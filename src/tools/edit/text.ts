import { editDistance } from "../../util/similarity.ts"

/** A line and its line ending, which may be empty for the last line. `start` is an offset in UTF-16 units. */
export interface Line {
  text: string
  eol: string
  start: number
}

/** Splits text into lines. A final line ending does not start another line. Empty text has no lines. */
export function splitLines(text: string): Line[] {
  const lines: Line[] = []
  let start = 0
  for (const { 0: eol, index } of text.matchAll(/\r\n|[\n\r]/g)) {
    lines.push({ text: text.slice(start, index), eol, start })
    start = index + eol.length
  }
  if (start < text.length) lines.push({ text: text.slice(start), eol: "", start })
  return lines
}

/** Returns the white space at the start of a line. */
export function indentOf(line: string): string {
  return line.slice(0, line.length - line.trimStart().length)
}

/** Returns true if the line contains only white space. */
export function isBlank({ text }: Line): boolean {
  return text.trim() === ""
}

/** Returns the text with `\n` as its only line ending. */
export function toLf(text: string): string {
  return text.includes("\r") ? text.replace(/\r\n?/g, "\n") : text
}

/** Returns the line numbers, from 1, of ascending offsets. Counts lines as the `read` tool does. */
export function lineNumbers(text: string, offsets: readonly number[]): number[] {
  const numbers: number[] = []
  let line = 1
  let next = text.indexOf("\n")
  for (const offset of offsets) {
    while (next !== -1 && next < offset) {
      line += 1
      next = text.indexOf("\n", next + 1)
    }
    numbers.push(line)
  }
  return numbers
}

/**
 * Returns a function that chooses the line ending of new text in a span: the most frequent one among the lines that the
 * span touches, or the most frequent one in the file. The function returns undefined if the file has no line ending.
 * Call it with spans in ascending order.
 */
export function eolFinder(text: string): (span: Span) => string | undefined {
  if (!text.includes("\r")) return () => (text.includes("\n") ? "\n" : undefined)
  const counts = countEols(text)
  const overall = mostFrequent(counts)
  if (counts.size <= 1) return () => overall
  const breaks = splitLines(text).filter((line) => line.eol !== "")
  let first = 0
  return ({ start, end }) => {
    // A line ending belongs to the first span that contains it or ends with it.
    while (first < breaks.length && endOf(breaks[first]) <= start) first += 1
    const touched = new Map<string, number>()
    for (let index = first; index < breaks.length; index++) {
      const line = breaks[index]
      if (!line || (line.start >= end && touched.size > 0)) break
      touched.set(line.eol, (touched.get(line.eol) ?? 0) + 1)
    }
    return mostFrequent(touched) ?? overall
  }
}

function endOf(line: Line | undefined): number {
  return line ? line.start + line.text.length + line.eol.length : 0
}

function countEols(text: string): Map<string, number> {
  const counts = new Map<string, number>()
  for (const [eol] of text.matchAll(/\r\n|[\n\r]/g)) counts.set(eol, (counts.get(eol) ?? 0) + 1)
  return counts
}

/** Returns the most frequent text. On a tie, returns the text that occurs first. */
function mostFrequent(counts: ReadonlyMap<string, number>): string | undefined {
  let best: string | undefined
  for (const [eol, count] of counts) if (best === undefined || count > (counts.get(best) ?? 0)) best = eol
  return best
}

/** A range of text, in UTF-16 units from 0. Excludes `end`. */
export interface Span {
  start: number
  end: number
}

/** Returns true if the span covers whole lines, with or without the last line ending. */
export function coversLines(text: string, { start, end }: Span): boolean {
  const isBreak = (at: number) => /[\n\r]/.test(text.charAt(at))
  return (start === 0 || isBreak(start - 1)) && (end === text.length || isBreak(end) || isBreak(end - 1))
}

/**
 * Returns the span of `count` lines from index `start`. Includes the last line ending if the old lines end with a line
 * ending. Returns an empty list if the lines do not exist.
 */
export function lineSpan(
  lines: readonly Line[],
  old: readonly Line[],
  { start, count }: { start: number; count: number },
): Span[] {
  const [first, last] = [lines[start], lines[start + count - 1]]
  if (!first || !last) return []
  const eol = old.at(-1)?.eol !== ""
  return [{ start: first.start, end: last.start + last.text.length + (eol ? last.eol.length : 0) }]
}

/** Options that select the occurrences to find. If `overlapping` is true, "aa" occurs twice in "aaa". */
export interface OccurrenceOptions {
  limit: number
  overlapping: boolean
}

/** Returns the offsets at which `needle` occurs. */
function occurrences(text: string, needle: string, { limit, overlapping }: OccurrenceOptions): number[] {
  const found: number[] = []
  const step = overlapping ? 1 : needle.length
  for (let at = text.indexOf(needle); at !== -1 && found.length < limit; at = text.indexOf(needle, at + step))
    found.push(at)
  return found
}

/** Returns the indexes of at most `limit` lines at which the sequence of keys begins, including overlapping matches. */
export type LineIndex = (keys: readonly string[], limit: number) => number[]

/**
 * Creates an index of lines by their keys, which contain no line endings. Joins the keys into one text with a line
 * ending on both sides of each key, so that a text search finds whole lines in linear time.
 */
export function createLineIndex(keys: readonly string[]): LineIndex {
  const joined = (each: readonly string[]) => `\n${each.map((key) => `${key}\n`).join("")}`
  const text = joined(keys)
  return (wanted, limit) => {
    let [line, counted] = [0, 0]
    return occurrences(text, joined(wanted), { limit, overlapping: true }).map((offset) => {
      for (; counted < offset; counted = text.indexOf("\n", counted + 1)) line += 1
      return line
    })
  }
}

/** Returns the spans of `needle`, except those that split a CRLF. */
export function exactSpans(text: string, needle: string, options: OccurrenceOptions): Span[] {
  const splitsBreak = (at: number) => text.charAt(at - 1) === "\r" && text.charAt(at) === "\n"
  return occurrences(text, needle, options)
    .map((start) => ({ start, end: start + needle.length }))
    .filter(({ start, end }) => !splitsBreak(start) && !splitsBreak(end))
}

/** A text in which some characters are replaced, and a mapping of offsets back to the original text. */
export interface FoldedText {
  text: string
  /** Maps an offset to the original text. Returns undefined inside a replacement. */
  original(offset: number): number | undefined
}

/** Returns the original spans of `needle`, except those that start or end inside a replacement. */
export function foldedSpans(folded: FoldedText, needle: string, options: OccurrenceOptions): Span[] {
  const spans: Span[] = []
  for (const at of occurrences(folded.text, needle, options)) {
    const [start, end] = [folded.original(at), folded.original(at + needle.length)]
    if (start !== undefined && end !== undefined) spans.push({ start, end })
  }
  return spans
}

/**
 * Replaces the matches of a global pattern. Takes linear time. Memory grows with the number of replacements that change
 * the length.
 */
export function foldText(text: string, pattern: RegExp, replace: (found: string) => string): FoldedText {
  const shifts: Shift[] = []
  const pieces: string[] = []
  let end = 0
  let length = 0
  for (const { 0: found, index } of text.matchAll(pattern)) {
    const replacement = replace(found)
    pieces.push(text.slice(end, index), replacement)
    length += index - end
    end = index + found.length
    if (found.length !== replacement.length) {
      shifts.push({ start: length, end: length + replacement.length, original: end })
    }
    length += replacement.length
  }
  pieces.push(text.slice(end))
  const original = (offset: number) => {
    const shift = lastBefore(shifts, offset)
    if (!shift) return offset
    return offset < shift.end ? undefined : shift.original + offset - shift.end
  }
  return { text: pieces.join(""), original }
}

/** A replacement that changed the length: its range in the folded text, and its end in the original text. */
interface Shift {
  start: number
  end: number
  original: number
}

/** Finds the last shift that starts before the offset, by binary search. */
function lastBefore(shifts: readonly Shift[], offset: number): Shift | undefined {
  let low = 0
  let high = shifts.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((shifts[middle]?.start ?? 0) < offset) low = middle + 1
    else high = middle
  }
  return shifts[low - 1]
}

/** Two sequences to compare, described by their lengths and a function that compares items by index. */
export interface Compared {
  old: number
  fresh: number
  same(old: number, fresh: number): boolean
  /** Whether the last of several equal items is preferred. */
  fromEnd?: boolean
}

/**
 * Maximum product of the lengths, which limits time and memory. For longer sequences, only the common prefix and suffix
 * are compared.
 */
const maxComparisons = 1_000_000

/**
 * Returns the longest common subsequence as pairs of indexes, ascending. For long sequences, returns only the common
 * prefix and suffix.
 */
export function commonSequence(compared: Compared): { old: number; fresh: number }[] {
  const { old, fresh, same, fromEnd = false } = compared
  if (fromEnd) {
    const mirrored = (a: number, b: number) => same(old - 1 - a, fresh - 1 - b)
    return commonSequence({ old, fresh, same: mirrored })
      .map((pair) => ({ old: old - 1 - pair.old, fresh: fresh - 1 - pair.fresh }))
      .toReversed()
  }
  const shorter = Math.min(old, fresh)
  let head = 0
  while (head < shorter && same(head, head)) head += 1
  let tail = 0
  while (tail < shorter - head && same(old - 1 - tail, fresh - 1 - tail)) tail += 1
  const kept = Array.from({ length: head }, (_, index) => ({ old: index, fresh: index }))
  const [rows, columns] = [old - head - tail, fresh - head - tail]
  const lengths =
    rows * columns > maxComparisons ? [] : commonLengths(rows, columns, (a, b) => same(head + a, head + b))
  const at = (row: number, column: number) => lengths[row]?.[column] ?? 0
  let [row, column] = [0, 0]
  while (at(row, column) > 0) {
    if (same(head + row, head + column)) kept.push({ old: head + row++, fresh: head + column++ })
    else if (at(row + 1, column) >= at(row, column + 1)) row += 1
    else column += 1
  }
  for (let left = tail; left > 0; left--) kept.push({ old: old - left, fresh: fresh - left })
  return kept
}

/**
 * Returns, for each pair of indexes, the length of the longest common subsequence of the items starting at these
 * indexes.
 */
function commonLengths(
  rows: number,
  columns: number,
  same: (row: number, column: number) => boolean,
): number[][] {
  const lengths = Array.from({ length: rows + 1 }, () => new Array<number>(columns + 1).fill(0))
  for (let row = rows - 1; row >= 0; row--) {
    const [current, below] = [lengths[row] ?? [], lengths[row + 1] ?? []]
    for (let column = columns - 1; column >= 0; column--) {
      const skip = Math.max(below[column] ?? 0, current[column + 1] ?? 0)
      current[column] = same(row, column) ? (below[column + 1] ?? 0) + 1 : skip
    }
  }
  return lengths
}

/** Old items and the new items that replace them. Either range may be empty. */
export interface Change {
  old: Span
  fresh: Span
}

/** Returns the ranges between the items of the longest common subsequence. */
export function changesBetween(compared: Compared): Change[] {
  const changes: Change[] = []
  let [old, fresh] = [0, 0]
  for (const next of [...commonSequence(compared), { old: compared.old, fresh: compared.fresh }]) {
    if (next.old > old || next.fresh > fresh) {
      changes.push({ old: { start: old, end: next.old }, fresh: { start: fresh, end: next.fresh } })
    }
    old = next.old + 1
    fresh = next.fresh + 1
  }
  return changes
}

/** Splits text into words: runs of letters, digits and underscores. */
export function wordsOf(text: string): string[] {
  return text.match(/[\p{L}\p{N}_]+/gu) ?? []
}

/** Minimum score at which two lines count as similar. */
const changeFloor = 0.5

/** Compares two texts. The score ranges from 0 to 1 and equals `1 - distance / length`. */
export function similarity(a: string, b: string): { distance: number; length: number; score: number } {
  const length = Math.max(a.length, b.length)
  const distance = editDistance(a, b)
  return { distance, length, score: length === 0 ? 1 : 1 - distance / length }
}

/** Returns true if one line may be an edited version of the other, because at least half of its text is unchanged. */
export function isSimilar(a: string, b: string): boolean {
  return similarity(a, b).score >= changeFloor
}

/**
 * Returns a function that scores another text from 0 to 1 by shared pairs of characters. Fast enough to score many
 * texts.
 */
export function pairSimilarity(text: string): (other: string) => number {
  const own = pairs(text)
  const total = Math.max(text.length - 1, 0)
  return (other) => {
    if (other === text) return 1
    const left = new Map(own)
    let shared = 0
    for (let index = 0; index + 1 < other.length; index++) {
      const pair = other.slice(index, index + 2)
      const count = left.get(pair) ?? 0
      if (count === 0) continue
      left.set(pair, count - 1)
      shared += 1
    }
    return (2 * shared) / Math.max(total + other.length - 1, 1)
  }
}

function pairs(text: string): Map<string, number> {
  const counts = new Map<string, number>()
  for (let index = 0; index + 1 < text.length; index++) {
    const pair = text.slice(index, index + 2)
    counts.set(pair, (counts.get(pair) ?? 0) + 1)
  }
  return counts
}

import { candidates } from "./occurrences.ts"
import { editDistance } from "./similarity.ts"
import { indentOf, type Line } from "./text-lines.ts"

/** Blocks whose ends are too common to compare every pair of them. */
const maxBlocks = 500
/** How alike the lines between the ends of a block must be: all together, and each by itself. */
const blockFloor = 0.8
const lineFloor = 0.5

/** A line as the comparison sees it. */
export type LineKey = (text: string) => string

export const trimmed: LineKey = (text) => text.trim()
export const collapsed: LineKey = (text) => text.trim().replace(/[ \t]+/g, " ")

/**
 * Where whole lines equal the old lines by their keys: indexes of first lines, at most `limit`. Old lines without any text are found nowhere: every empty line would do.
 */
export function findLines(
  lines: readonly Line[],
  old: readonly Line[],
  key: LineKey,
  limit: number,
): number[] {
  if (old.every((line) => key(line.text) === "")) return []
  // Searched as one text, in which a line ending stands on both sides of every line: the engine's search is linear.
  const text = `\n${lines.map((line) => `${key(line.text)}\n`).join("")}`
  const needle = `\n${old.map((line) => `${key(line.text)}\n`).join("")}`
  return linesOf(text, candidates(text, needle, limit))
}

/** True if the lines differ at their ends alone. */
export function differAtEnds(lines: readonly Line[], old: readonly Line[]): boolean {
  return lines.every((line, index) => line.text.trimEnd() === old[index]?.text.trimEnd())
}

/** True if the lines, apart from white space at their ends, differ by one indentation that all of them share. */
export function differByIndent(lines: readonly Line[], old: readonly Line[]): boolean {
  const [own, other] = [withoutIndent(lines), withoutIndent(old)]
  return own.every((text, index) => text === other[index])
}

/**
 * Where a block of as many lines (three or more) begins and ends like the old lines, while those between are at least
 * 80 % alike, each of them at least 50 %. Indexes of first lines; none where the ends are too common to compare.
 */
export function findBlocks(lines: readonly Line[], old: readonly Line[]): number[] {
  const wanted = old.map((line) => line.text.trim())
  const [head, tail] = [wanted[0], wanted.at(-1)]
  if (wanted.length < 3 || !head || !tail) return []
  const starts: number[] = []
  for (let index = 0; index + wanted.length <= lines.length; index++) {
    const ends = lines[index + wanted.length - 1]
    if (lines[index]?.text.trim() === head && ends?.text.trim() === tail) starts.push(index)
  }
  if (starts.length > maxBlocks) return []
  return starts.filter((start) => isAlike(lines.slice(start, start + wanted.length), wanted))
}

function linesOf(text: string, offsets: readonly number[]): number[] {
  let line = 0
  let at = 0
  return offsets.map((offset) => {
    for (; at < offset; at = text.indexOf("\n", at + 1)) line += 1
    return line
  })
}

function withoutIndent(lines: readonly Line[]): string[] {
  const texts = lines.map((line) => line.text.trimEnd())
  const shared = texts.filter((text) => text !== "").map(indentOf)
  const common = shared.reduce((a, b) => a.slice(0, sharedLength(a, b)), shared[0] ?? "")
  return texts.map((text) => text.slice(common.length))
}

function sharedLength(a: string, b: string): number {
  let length = 0
  while (length < a.length && a[length] === b[length]) length += 1
  return length
}

function isAlike(lines: readonly Line[], wanted: readonly string[]): boolean {
  let [distance, length] = [0, 0]
  for (const [index, line] of lines.entries()) {
    const text = line.text.trim()
    const other = wanted[index] ?? ""
    const longer = Math.max(text.length, other.length)
    const apart = editDistance(text, other)
    if (longer > 0 && 1 - apart / longer < lineFloor) return false
    distance += apart
    length += longer
  }
  return 1 - distance / length >= blockFloor
}

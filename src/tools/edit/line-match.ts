import { toPlain } from "./look-alikes.ts"
import { candidates } from "./occurrences.ts"
import { indentOf, type Line } from "./text-lines.ts"

/** A line as the comparison sees it. */
export type LineKey = (text: string) => string

/** Indentation and white space at the end do not count. */
export const trimmed: LineKey = (text) => text.trim()
/** As `trimmed`, and blanks and tabs within the line count as one blank. */
export const collapsed: LineKey = (text) => text.trim().replace(/[ \t]+/g, " ")
/** White space counts between two words alone. */
export const unspaced: LineKey = (text) =>
  text.trim().replace(/(?<![\p{L}\p{N}_])[ \t]+|[ \t]+(?![\p{L}\p{N}_])/gu, "")
/** As `unspaced`, and signs that look alike count as the same. */
export const plain: LineKey = (text) => unspaced(toPlain(text))

/**
 * Finds where whole lines equal old lines by their keys: indexes of first lines, at most `limit`. Old lines without any
 * text are found nowhere: every empty line would do. The keys of `lines` are made when first needed.
 */
export function createLineSearch(
  lines: () => readonly Line[],
  key: LineKey,
  limit: number,
): (old: readonly Line[]) => number[] {
  // Searched as one text, in which a line ending stands on both sides of every line: the engine's search is linear.
  const joined = (all: readonly Line[]) => `\n${all.map((line) => `${key(line.text)}\n`).join("")}`
  let text: string | undefined
  return (old) => {
    if (old.every((line) => key(line.text) === "")) return []
    text ??= joined(lines())
    return linesOf(text, candidates(text, joined(old), limit))
  }
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

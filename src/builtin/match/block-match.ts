import { editDistance } from "./similarity.ts"
import type { Line } from "./text-lines.ts"

/** Blocks that are too common to compare every one of them. */
const maxBlocks = 500
/** How alike the lines of a block must be to be the old ones, all together and each by itself. */
const sameFloors = { block: 0.85, line: 0.8 }
/** And how alike those of another may not be. */
const rivalFloors = { block: 0.7, line: 0.4 }
/** So few exact lines tell a place. */
const minExact = 2
/** How much of a line an edit leaves as it was. */
const changeFloor = 0.5

/**
 * Where a block of as many lines (three or more) resembles the old lines: they are at least 85 % alike, each of them at
 * least 80 %. Indexes of first lines. None where no block begins and ends like the old lines, or too many resemble them.
 */
export function findBlocks(lines: readonly Line[], old: readonly Line[]): number[] {
  const wanted = old.map((line) => line.text.trim())
  if (wanted.length < 3 || !wanted[0] || !wanted.at(-1)) return []
  const texts = lines.map((line) => line.text.trim())
  const starts: number[] = []
  for (let start = 0; start + wanted.length <= texts.length; start++) {
    if (sharesLines(texts, start, wanted)) starts.push(start)
    if (starts.length > maxBlocks) return []
  }
  const last = wanted.length - 1
  const hasEnds = (start: number) => texts[start] === wanted[0] && texts[start + last] === wanted[last]
  const blockAt = (start: number) => texts.slice(start, start + wanted.length)
  if (!starts.some((start) => hasEnds(start) && isAlike(blockAt(start), wanted, sameFloors))) return []
  // One that is less alike, or differs at its ends, is not taken, but shows that the old lines do not tell the two apart.
  return starts.filter((start) => isAlike(blockAt(start), wanted, rivalFloors))
}

/** Where all of the old lines but one, three at least, stand exactly. Indexes of first lines. */
export function findMisquoted(lines: readonly Line[], old: readonly Line[]): number[] {
  if (old.length < minExact + 1) return []
  const starts: number[] = []
  for (let start = 0; start + old.length <= lines.length; start++) {
    let others = 0
    for (let at = 0; at < old.length && others < 2; at++) {
      if (lines[start + at]?.text !== old[at]?.text) others += 1
    }
    if (others === 1) starts.push(start)
  }
  return starts
}

/** True if half of the lines, at least, are the same. */
function sharesLines(texts: readonly string[], start: number, wanted: readonly string[]): boolean {
  let shared = 0
  for (const [index, text] of wanted.entries()) if (texts[start + index] === text) shared += 1
  return shared * 2 >= wanted.length
}

/** True if a line may have become the other: half of it is the same. */
export function areAlike(a: string, b: string): boolean {
  return likeness(a, b).score >= changeFloor
}

function isAlike(
  texts: readonly string[],
  wanted: readonly string[],
  floors: { block: number; line: number },
): boolean {
  let [distance, length] = [0, 0]
  for (const [index, text] of texts.entries()) {
    const { score, ...sizes } = likeness(text, wanted[index] ?? "")
    if (score < floors.line) return false
    distance += sizes.distance
    length += sizes.length
  }
  return 1 - distance / length >= floors.block
}

function likeness(a: string, b: string): { distance: number; length: number; score: number } {
  const length = Math.max(a.length, b.length)
  const distance = editDistance(a, b)
  return { distance, length, score: length === 0 ? 1 : 1 - distance / length }
}

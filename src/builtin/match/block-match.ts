import { editDistance } from "./similarity.ts"
import type { Line } from "./text-lines.ts"

/** Blocks that are too common to compare every one of them. */
const maxBlocks = 500
/** How alike the lines of a block must be: all together, and each by itself. */
const blockFloor = 0.85
const lineFloor = 0.7
/** How much of a line an edit leaves as it was. */
const changeFloor = 0.5

/**
 * Where a block of as many lines (three or more) resembles the old lines: they are at least 85 % alike, each of them at
 * least 70 %. Indexes of first lines. None where no block begins and ends like the old lines, or too many resemble them.
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
  const alike = starts.filter((start) => isAlike(texts.slice(start, start + wanted.length), wanted))
  const last = wanted.length - 1
  // One whose ends differ is not taken, but shows that the old lines do not tell the two apart.
  return alike.some((start) => texts[start] === wanted[0] && texts[start + last] === wanted[last])
    ? alike
    : []
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

function isAlike(texts: readonly string[], wanted: readonly string[]): boolean {
  let [distance, length] = [0, 0]
  for (const [index, text] of texts.entries()) {
    const { score, ...sizes } = likeness(text, wanted[index] ?? "")
    if (score < lineFloor) return false
    distance += sizes.distance
    length += sizes.length
  }
  return 1 - distance / length >= blockFloor
}

function likeness(a: string, b: string): { distance: number; length: number; score: number } {
  const length = Math.max(a.length, b.length)
  const distance = editDistance(a, b)
  return { distance, length, score: length === 0 ? 1 : 1 - distance / length }
}

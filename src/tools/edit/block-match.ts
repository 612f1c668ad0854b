import { similarity } from "../../util/similarity.ts"
import { hasForeignWord, wordsOf } from "./foreign-words.ts"
import { findMisquoted, isSlip } from "./misquoted-line.ts"
import type { Line } from "./text-lines.ts"

/** Blocks that are too common to compare every one of them. */
const maxBlocks = 500
/** How alike the lines of a block must be to be the old ones, all together and each by itself. */
const sameFloors = { block: 0.85, line: 0.8 }
/** And how alike those of another may not be. */
const rivalFloors = { block: 0.7, line: 0.4 }

/**
 * Where a block of as many lines (three or more) resembles the old lines: either begins and ends like them, and they are
 * at least 85 % alike, each of them at least 80 %; or all but one stand there exactly, and that one has a slip in one
 * word. Indexes of first lines; others than the best where they resemble it too. None where too many do.
 */
export function findBlocks(lines: readonly Line[], old: readonly Line[]): number[] {
  const wanted = old.map((line) => line.text.trim())
  if (wanted.length < 3) return []
  const texts = lines.map((line) => line.text.trim())
  const starts: number[] = []
  for (let start = 0; start + wanted.length <= texts.length; start++) {
    if (sharesLines(texts, start, wanted)) starts.push(start)
    if (starts.length > maxBlocks) return []
  }
  const last = wanted.length - 1
  const hasEnds = (start: number) =>
    wanted[0] !== "" &&
    wanted[last] !== "" &&
    texts[start] === wanted[0] &&
    texts[start + last] === wanted[last]
  const blockAt = (start: number) => texts.slice(start, start + wanted.length)
  const misquoted = findMisquoted(lines, old)
  let words: Set<string> | undefined
  const isInFile = (word: string) => {
    words ??= new Set(texts.flatMap(wordsOf))
    return words.has(word)
  }
  const isSame = (start: number) =>
    ((hasEnds(start) && isAlike(blockAt(start), wanted, sameFloors)) ||
      (misquoted.includes(start) && isSlip(blockAt(start), wanted))) &&
    !hasForeignWord(blockAt(start), wanted, isInFile)
  if (!starts.some(isSame)) return []
  // One that is less alike, or differs at its ends, is not taken, but shows that the old lines do not tell the two apart.
  const rivals = starts.filter((start) => isAlike(blockAt(start), wanted, rivalFloors))
  return [...new Set([...rivals, ...misquoted])].sort((a, b) => a - b)
}

/** True if half of the lines, at least, are the same. */
function sharesLines(texts: readonly string[], start: number, wanted: readonly string[]): boolean {
  let shared = 0
  for (const [index, text] of wanted.entries()) if (texts[start + index] === text) shared += 1
  return shared * 2 >= wanted.length
}

function isAlike(
  texts: readonly string[],
  wanted: readonly string[],
  floors: { block: number; line: number },
): boolean {
  let [distance, length] = [0, 0]
  for (const [index, text] of texts.entries()) {
    const { score, ...sizes } = similarity(text, wanted[index] ?? "")
    if (score < floors.line) return false
    distance += sizes.distance
    length += sizes.length
  }
  return 1 - distance / length >= floors.block
}

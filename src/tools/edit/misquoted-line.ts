import { similarity } from "../../util/similarity.ts"
import type { Line } from "./text-lines.ts"

/** So few exact lines tell a place. */
const minExact = 2
/** And so few where the line that is another is the first or the last. */
const minAtEdge = 3
/** How alike the word must be that is another. */
const slipFloor = 0.75

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

/**
 * True if the one line that is another differs by a slip in one word, and the others tell the place: they stand around it,
 * or are more where it is the first or the last.
 */
export function isSlip(texts: readonly string[], wanted: readonly string[]): boolean {
  const at = wanted.findIndex((text, index) => texts[index] !== text)
  const exact = (lines: readonly string[]) => lines.filter(isTelling).length
  const [above, below] = [exact(wanted.slice(0, at)), exact(wanted.slice(at + 1))]
  const isBetween = above > 0 && below > 0
  return (
    above + below >= (isBetween ? minExact : minAtEdge) &&
    isNearWord(wanted[at] ?? "", texts[at] ?? "", isBetween)
  )
}

/** True if the lines are the same but for one word, which goes on or has other capitals, or is much alike in between. */
function isNearWord(text: string, other: string, isBetween: boolean): boolean {
  const [words, others] = [text.split(/\b/), other.split(/\b/)]
  const changed = [...words.keys()].filter((index) => words[index] !== others[index])
  const [only, ...more] = changed
  if (words.length !== others.length || only === undefined || more.length > 0) return false
  const [a = "", b = ""] = [words[only], others[only]]
  if (!/\w/.test(a) || !/\w/.test(b)) return false
  const [small, large] = [a, b].map((word) => word.toLowerCase()).sort((one, two) => one.length - two.length)
  return (large ?? "").startsWith(small ?? "") || (isBetween && similarity(a, b).score >= slipFloor)
}

/** Brackets alone stand everywhere. */
function isTelling(text: string): boolean {
  return /\w\w/.test(text)
}

import { commonSequence } from "./common-sequence.ts"
import type { Line } from "./text-lines.ts"

/** So many lines may be missing without a mark, and so few must be there. */
const maxUnmarked = 3
const minQuoted = 3
/** So many lines may stand for one mark. */
const maxMarked = 300

/** A line that stands for others: `...`, `// ... existing code ...`, `<!-- … -->`. Not `...options,`, which is code. */
const mark =
  /^\s*(?:(?:\/\/|\/\*|#|--|<!--|;|%|\{\/\*)\s*[[(]?(?:\.{3}|…)|[[(]?(?:\.{3}|…)(?![\w$]))[^"'`=;{}]*(?:\*\/\}?|-->)?\s*$/

/** Lines of a file with the old line that each is; undefined for one that the old text left out. */
export interface GappedBlock {
  start: number
  quoted: (number | undefined)[]
}

/**
 * Where the old lines stand with lines between them that the old text left out: any number where it has a mark such as
 * `...`, else at most three in all. White space at line ends does not count. A place that fits in two ways, or where a line
 * that is quoted stands once more, is given twice, and where there is one alone, others that lack one line of it are given too: what tells places apart may be
 * what was left out.
 */
export function findGappedBlocks(lines: readonly Line[], old: readonly Line[]): GappedBlock[] {
  const texts = lines.map((line) => line.text.trimEnd())
  const wanted = old.map((line) => line.text.trimEnd())
  const [first] = wanted
  if (!first || !wanted.at(-1) || isMark(first) || isMark(wanted.at(-1) ?? "")) return []
  const blocksAt = wanted.some(isMark) ? markedBlocks(texts, wanted) : unmarkedBlocks(texts, wanted)
  const starts = texts.flatMap((text, index) => (text === first ? [index] : []))
  const blocks = starts.flatMap((start) => blocksAt(start).map((quoted) => ({ start, quoted })))
  const [only, ...more] = blocks
  return only && more.length === 0 ? [only, ...rivalsOf(only, texts, wanted)] : blocks
}

/** Elsewhere all quoted lines but one, at least two, stand in order within as many lines. */
function rivalsOf(block: GappedBlock, texts: readonly string[], wanted: readonly string[]): GappedBlock[] {
  const quoted = wanted.filter((text) => text !== "" && !isMark(text))
  const reach = block.quoted.length + maxUnmarked
  const end = block.start + block.quoted.length
  for (const [start, text] of texts.entries()) {
    if (text === "" || (text !== quoted[0] && text !== quoted[1])) continue
    if (start < end && start + reach > block.start) continue
    const near = texts.slice(start, start + reach)
    const shared = commonSequence({
      old: quoted.length,
      fresh: near.length,
      same: (a, b) => quoted[a] === near[b],
    })
    if (shared.length >= Math.max(2, quoted.length - 1)) return [{ start, quoted: near.map(() => undefined) }]
  }
  return []
}

/** The ways in which the old lines fit from a line on: none, one, or two where there are more. */
type BlocksAt = (start: number) => (number | undefined)[][]

/** True for a line that stands for others. */
export function isMark(line: string): boolean {
  return mark.test(line)
}

/** What stands between two marks may be any such text in reach. */
function markedBlocks(texts: readonly string[], wanted: readonly string[]): BlocksAt {
  const parts = splitAtMarks(wanted)
  if (parts.some(({ count }) => count === 0)) return () => []
  return (start) => {
    let ways: (number | undefined)[][] = [[]]
    for (const [index, { first, count }] of parts.entries()) {
      const part = Array.from({ length: count }, (_, offset) => first + offset)
      const isAt = (place: number) => part.every((at, offset) => texts[place + offset] === wanted[at])
      ways = ways.flatMap((quoted) => {
        const skips = Array.from({ length: index === 0 ? 1 : maxMarked }, (_, skip) => skip)
        const fitting = skips.filter((skip) => isAt(start + quoted.length + skip)).slice(0, 2)
        return fitting.map((skip) => [...quoted, ...new Array<undefined>(skip).fill(undefined), ...part])
      })
      ways = ways.slice(0, 2)
    }
    return ways
  }
}

function splitAtMarks(wanted: readonly string[]): { first: number; count: number }[] {
  const marks = [...wanted.keys()].filter((index) => isMark(wanted[index] ?? ""))
  return [-1, ...marks].map((at, index) => ({
    first: at + 1,
    count: (marks[index] ?? wanted.length) - at - 1,
  }))
}

function unmarkedBlocks(texts: readonly string[], wanted: readonly string[]): BlocksAt {
  if (wanted.filter((text) => text !== "").length < minQuoted) return () => []
  return (start) => {
    const quoted = walk(texts.slice(start, start + wanted.length + maxUnmarked), wanted)
    if (!quoted || quoted.length === wanted.length) return []
    const last = wanted.length - 1
    const back = walk(texts.slice(start, start + quoted.length).toReversed(), wanted.toReversed())
    const other = back?.toReversed().map((index) => (index === undefined ? undefined : last - index)) ?? []
    const repeats = quoted.some((index, at) => {
      const text = texts[start + at] ?? ""
      return index === undefined && /\w/.test(text) && wanted.includes(text)
    })
    return quoted.every((index, at) => index === other[at]) && !repeats ? [quoted] : [quoted, other]
  }
}

/** Each wanted line at the first place where it can be. */
function walk(texts: readonly string[], wanted: readonly string[]): (number | undefined)[] | undefined {
  const quoted: (number | undefined)[] = []
  let next = 0
  for (const text of texts) {
    if (next === wanted.length) break
    quoted.push(text === wanted[next] ? next++ : undefined)
  }
  return next === wanted.length ? quoted : undefined
}

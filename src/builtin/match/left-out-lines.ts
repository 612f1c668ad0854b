import { changesBetween, commonSequence } from "./common-sequence.ts"
import { areAlike } from "./similarity.ts"
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
 * `...`, else at most three in all. White space at line ends does not count. A place that fits in two ways is given
 * twice, and where there is one alone, others that lack one line of it are given too: what tells places apart may be
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

function isMark(line: string): boolean {
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
    return quoted.every((index, at) => index === other[at]) ? [quoted] : [quoted, other]
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

/** An edit whose lines are to be completed. `file` begins and ends where `old` does. */
export interface GappedEdit {
  file: readonly Line[]
  old: readonly Line[]
  fresh: readonly Line[]
}

/**
 * Puts the lines that were left out where they belong in both texts, in place of their marks. Undefined where the new
 * text does not show where that is, because lines beside them change or equal others, or is what stands there already.
 */
export function fillGaps(edit: GappedEdit): { old: Line[]; fresh: Line[] } | undefined {
  const { file, fresh } = edit
  if (fresh.length === file.length && fresh.every((line, at) => line.text.trim() === file[at]?.text.trim()))
    return undefined
  const [filled, other] = [fillAligned(edit, false), fillAligned(edit, true)]
  const isSame = filled?.fresh.every((line, at) => line.text === other?.fresh[at]?.text)
  return isSame && filled?.fresh.length === other?.fresh.length ? filled : undefined
}

/** `fromEnd`: which of equal lines the new text is taken to keep. */
function fillAligned(
  { file, old, fresh }: GappedEdit,
  fromEnd: boolean,
): { old: Line[]; fresh: Line[] } | undefined {
  const [block, ...more] = findGappedBlocks(file, old).filter(
    ({ start, quoted }) => start === 0 && quoted.length === file.length,
  )
  if (!block || more.length > 0) return undefined
  const successors = createSuccessors(old, fresh, fromEnd)
  const filled = new Map<number, Line[]>()
  const marks = new Set<number>()
  const completed: Line[] = []
  let before = -1
  for (const [at, index] of block.quoted.entries()) {
    const line = file[at]
    if (!line) return undefined
    const own = index === undefined ? undefined : old[index]
    completed.push(own ?? line)
    if (index !== undefined) {
      before = index
      continue
    }
    const place = isMark(old[before + 1]?.text ?? "")
      ? successors.mark(before + 1)
      : successors.between(before)
    if (place === undefined) return undefined
    if (isMark(old[before + 1]?.text ?? "")) marks.add(place)
    filled.set(place, [...(filled.get(place) ?? []), line])
  }
  // A mark that the new text has and the old has not would be written into the file.
  if (fresh.some((line, index) => isMark(line.text) && !marks.has(index))) return undefined
  const whole = fresh.flatMap((line, index) => [
    ...(filled.get(index) ?? []),
    ...(marks.has(index) ? [] : [line]),
  ])
  const all = [...whole, ...(filled.get(fresh.length) ?? [])]
  const end = fresh.at(-1)?.eol ?? ""
  return {
    old: completed,
    fresh: all.map((line, index) => (index === all.length - 1 ? { ...line, eol: end } : line)),
  }
}

/** Where in the new text something stands, as the index of the line that follows it or takes its place. */
function createSuccessors(old: readonly Line[], fresh: readonly Line[], fromEnd: boolean) {
  const same = (a: number, b: number) => old[a]?.text === fresh[b]?.text
  const compared = { old: old.length, fresh: fresh.length, same, fromEnd }
  const places = new Map(commonSequence(compared).map((pair) => [pair.old, pair.fresh]))
  const removed = new Set<number>()
  for (const { old: lost, fresh: added } of changesBetween(compared)) {
    // A line for a line: what was beside the one is beside the other.
    if (added.end - added.start === lost.end - lost.start) {
      for (let at = 0; at < lost.end - lost.start; at++) {
        const [before, after] = [old[lost.start + at]?.text ?? "", fresh[added.start + at]?.text ?? ""]
        if (areAlike(before.trim(), after.trim())) places.set(lost.start + at, added.start + at)
      }
    }
    if (added.start < added.end) continue
    for (let index = lost.start; index < lost.end; index++) removed.add(index)
  }
  return {
    mark: (index: number): number | undefined =>
      isMark(fresh[places.get(index) ?? -1]?.text ?? "") ? places.get(index) : undefined,
    /** Between an old line and the next. */
    between(index: number): number | undefined {
      // Among empty lines nothing tells which of them are kept.
      if (!old[index]?.text.trim() && !old[index + 1]?.text.trim()) return undefined
      const [before, after] = [places.get(index), places.get(index + 1)]
      if (before !== undefined && (after === before + 1 || removed.has(index + 1))) return before + 1
      return after !== undefined && removed.has(index) ? after : undefined
    },
  }
}

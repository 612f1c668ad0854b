import { changesBetween, commonSequence } from "./common-sequence.ts"
import type { Line } from "./text-lines.ts"

/** So many lines may be missing without a mark, and so few must be there. */
const maxUnmarked = 3
const minQuoted = 3
/** So many lines may stand for one mark. */
const maxMarked = 300

/** A line that stands for others: `...`, `// ... existing code ...`, `<!-- … -->`. */
const mark = /^\s*(?:\/\/|\/\*|#|--|<!--|;|%|\{\/\*)?\s*[[(]?(?:\.{3}|…)[^"'`=;{}]*(?:\*\/\}?|-->)?\s*$/

/** Lines of a file with the old line that each is; undefined for one that the old text left out. */
export interface GappedBlock {
  start: number
  quoted: (number | undefined)[]
}

/**
 * Where the old lines stand with lines between them that the old text left out: any number where it has a mark such as
 * `...`, else at most three in all. White space at line ends does not count. A place that fits in two ways is none.
 */
export function findGappedBlocks(lines: readonly Line[], old: readonly Line[]): GappedBlock[] {
  const texts = lines.map((line) => line.text.trimEnd())
  const wanted = old.map((line) => line.text.trimEnd())
  const [first] = wanted
  if (!first || !wanted.at(-1) || isMark(first) || isMark(wanted.at(-1) ?? "")) return []
  const blockAt = wanted.some(isMark) ? markedBlock(texts, wanted) : unmarkedBlock(texts, wanted)
  const starts = texts.flatMap((text, index) => (text === first ? [index] : []))
  return starts.flatMap((start) => {
    const quoted = blockAt(start)
    return quoted ? [{ start, quoted }] : []
  })
}

type BlockAt = (start: number) => (number | undefined)[] | undefined

function isMark(line: string): boolean {
  return mark.test(line)
}

/** What stands between two marks has to be the only such text in reach. */
function markedBlock(texts: readonly string[], wanted: readonly string[]): BlockAt {
  const parts = splitAtMarks(wanted)
  if (parts.some(({ count }) => count === 0)) return () => undefined
  return (start) => {
    const quoted: (number | undefined)[] = []
    for (const [index, { first, count }] of parts.entries()) {
      const from = start + quoted.length
      const places = Array.from({ length: index === 0 ? 1 : maxMarked }, (_, skip) => from + skip).filter(
        (place) => wanted.slice(first, first + count).every((text, offset) => texts[place + offset] === text),
      )
      const [place, ...more] = places
      if (place === undefined || more.length > 0) return undefined
      while (start + quoted.length < place) quoted.push(undefined)
      for (let at = first; at < first + count; at++) quoted.push(at)
    }
    return quoted
  }
}

function splitAtMarks(wanted: readonly string[]): { first: number; count: number }[] {
  const marks = [...wanted.keys()].filter((index) => isMark(wanted[index] ?? ""))
  return [-1, ...marks].map((at, index) => ({
    first: at + 1,
    count: (marks[index] ?? wanted.length) - at - 1,
  }))
}

function unmarkedBlock(texts: readonly string[], wanted: readonly string[]): BlockAt {
  if (wanted.filter((text) => text !== "").length < minQuoted) return () => undefined
  return (start) => {
    const quoted = walk(texts.slice(start, start + wanted.length + maxUnmarked), wanted)
    if (!quoted || quoted.length === wanted.length) return undefined
    const last = wanted.length - 1
    const back = walk(texts.slice(start, start + quoted.length).toReversed(), wanted.toReversed())
    const same = back?.toReversed().map((index) => (index === undefined ? undefined : last - index))
    return same && quoted.every((index, at) => index === same[at]) ? quoted : undefined
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
 * text does not show where that is, because lines beside them change.
 */
export function fillGaps({ file, old, fresh }: GappedEdit): { old: Line[]; fresh: Line[] } | undefined {
  const [block, ...more] = findGappedBlocks(file, old).filter(
    ({ start, quoted }) => start === 0 && quoted.length === file.length,
  )
  if (!block || more.length > 0) return undefined
  const successors = createSuccessors(old, fresh)
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
function createSuccessors(old: readonly Line[], fresh: readonly Line[]) {
  const same = (a: number, b: number) => old[a]?.text === fresh[b]?.text
  const compared = { old: old.length, fresh: fresh.length, same }
  const places = new Map(commonSequence(compared).map((pair) => [pair.old, pair.fresh]))
  const removed = new Set<number>()
  for (const { old: lost, fresh: added } of changesBetween(compared)) {
    if (added.start < added.end) continue
    for (let index = lost.start; index < lost.end; index++) removed.add(index)
  }
  return {
    mark: (index: number): number | undefined => places.get(index),
    /** Between an old line and the next. */
    between(index: number): number | undefined {
      const [before, after] = [places.get(index), places.get(index + 1)]
      if (before !== undefined && (after === before + 1 || removed.has(index + 1))) return before + 1
      return after !== undefined && removed.has(index) ? after : undefined
    },
  }
}

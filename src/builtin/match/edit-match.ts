import { findBlocks, findMisquoted } from "./block-match.ts"
import { type FoldedText, foldText } from "./fold-text.ts"
import { findGappedBlocks } from "./left-out-lines.ts"
import {
  collapsed,
  createLineSearch,
  differAtEnds,
  differByIndent,
  type LineKey,
  plain,
  trimmed,
  unspaced,
} from "./line-match.ts"
import { lookAlikes, plainForm, toPlain } from "./look-alikes.ts"
import { type NearestText, nearestText } from "./nearest-text.ts"
import { candidates, occurrences } from "./occurrences.ts"
import { hasLostEscapes, isDisputed, isEscapedBeyond, type Reading, readingsOf } from "./readings.ts"
import { resemblance } from "./similarity.ts"
import { coversLines, type Line, lineNumbers, splitLines, toLf } from "./text-lines.ts"

/** How old text was found, strictest first: the order in which the ways are tried. */
export type Strategy =
  | "exact"
  | "line-endings"
  | "trailing-whitespace"
  | "indentation"
  | "line-trimmed"
  | "whitespace"
  | "look-alikes"
  | "look-alike-lines"
  | "block-anchors"
  | "left-out-lines"

/** A piece of the text, in UTF-16 units from 0, `end` not included. */
export interface Span {
  start: number
  end: number
}

/**
 * `strategy`: the strictest that found anything. `reading`: the texts that it was found with. `lines`: where, from 1, the
 * first ten.
 */
export type EditMatch =
  | { kind: "found"; strategy: Strategy; reading: Reading; spans: Span[] }
  | { kind: "ambiguous"; strategy: Strategy; reading: Reading; count: number; lines: number[] }
  | { kind: "disputed"; reading: Reading; line: number }
  | { kind: "done"; line: number }
  | { kind: "missing"; nearest?: NearestText; exactOnly: boolean }

/** Above this many characters only the strategies that keep every character are tried. */
export const maxFuzzyLength = 5_000_000

/** As many places as one call may replace. */
export const maxReplacements = 1_000_000

const maxCounted = 10_000
const maxNamedLines = 10

/** The texts of an edit. `oldString` is not empty. */
export interface EditTexts {
  oldString: string
  newString: string
  replaceAll: boolean
}

/**
 * Looks for `oldString`. `found` has one span; several only with `replaceAll` and a strategy that keeps every character
 * but line endings. Any other text that fits several places is `ambiguous`, one that fits a place but can be read to
 * want two things there `disputed`, and nothing is guessed. Spans of the strategies that compare lines cover whole
 * lines, the last line ending where `oldString` has one. `done`: the old text is only alike to one place, and the new
 * text stands in the file whole.
 */
export function findEdit(text: string, edit: EditTexts): EditMatch {
  const exactOnly = text.length > maxFuzzyLength
  const readings = exactOnly ? readingsOf(edit).slice(0, 1) : readingsOf(edit)
  const search = createSearch(text, edit.replaceAll)
  for (const reading of readings) {
    for (const [strategy, find] of exactOnly ? search.exact : [...search.exact, ...search.strict]) {
      const spans = find(reading)
      if (spans.length === 0) continue
      const isPlain = isLiteral(strategy) && reading.decorations.length === 0
      const all = isPlain || spans.length > 1 ? spans : search.withRivals(reading, strategy, spans)
      return toMatch({ text, reading, readings, strategy, spans: all, ...edit })
    }
  }
  for (const [strategy, find] of exactOnly ? [] : search.loose) {
    const found = nearestReading(text, readings, find)
    if (!found) continue
    const done = found.spans.length === 1 ? search.lineOfWhole(found.reading.newString) : undefined
    return done === undefined
      ? toMatch({ text, readings, strategy, ...found, ...edit })
      : { kind: "done", line: done }
  }
  const nearest = exactOnly ? undefined : search.nearest(edit.oldString)
  return nearest ? { kind: "missing", nearest, exactOnly } : { kind: "missing", exactOnly }
}

/**
 * Lines that are only alike are found with escapes or without, whichever the file has: of these readings the one that is
 * most like the place says what the new text means. Several places, of whatever readings, are all given.
 */
function nearestReading(
  text: string,
  readings: readonly Reading[],
  find: Find,
): { reading: Reading; spans: Span[] } | undefined {
  const all = readings.map((reading) => ({ reading, spans: find(reading) }))
  const fewest = all.find((each) => each.spans.length > 0)
  const found = all.filter(({ reading }) => reading.wholeLines === fewest?.reading.wholeLines)
  const spans = new Map(
    found.flatMap((each) => each.spans).map((span) => [`${span.start}-${span.end}`, span]),
  )
  const [first] = spans.values()
  if (!first) return undefined
  const likenessOf = resemblance(toLf(text.slice(first.start, first.end)))
  const scored = found
    .filter((each) => each.spans.length > 0)
    .map(({ reading }) => ({ reading, score: likenessOf(toLf(reading.oldString)) }))
  const best = scored.reduce((nearest, each) => (each.score > nearest.score ? each : nearest))
  return { reading: best.reading, spans: [...spans.values()] }
}

function toMatch(found: {
  text: string
  reading: Reading
  readings: readonly Reading[]
  strategy: Strategy
  spans: Span[]
  replaceAll: boolean
}): EditMatch {
  const { text, reading, strategy, spans } = found
  const starts = spans.slice(0, maxNamedLines).map((span) => span.start)
  const lines = [...new Set(lineNumbers(text, starts))]
  const isPlain = isLiteral(strategy) && reading.decorations.length === 0
  if (spans.length > 1 && !(found.replaceAll && isPlain && spans.length <= maxReplacements)) {
    return { kind: "ambiguous", strategy, reading, count: spans.length, lines }
  }
  const isDoubtful = (span: Span) =>
    isEscapedBeyond(reading, text.slice(span.start, span.end)) ||
    (strategy === "block-anchors" && hasLostEscapes(reading, text.slice(span.start, span.end)))
  if (isDisputed(reading, found.readings) || spans.some(isDoubtful))
    return { kind: "disputed", reading, line: lines[0] ?? 1 }
  return { kind: "found", strategy, reading, spans }
}

/** True if every character but line endings is as it was given. */
function isLiteral(strategy: Strategy): boolean {
  return strategy === "exact" || strategy === "line-endings"
}

/** At most so many spans as the search may find. */
type Find = (reading: Reading) => Span[]

/** Where a text begins in another. */
type Places = (text: string, needle: string) => number[]

function createSearch(text: string, replaceAll: boolean) {
  const limit = replaceAll ? maxReplacements + 1 : maxCounted
  const unique: Places = (within, needle) => candidates(within, needle, limit)
  const places: Places = replaceAll ? (within, needle) => occurrences(within, needle, limit) : unique
  const lines = once(() => splitLines(text))
  const unified = once(() => foldText(text, lineEndings, toLf))
  const plainText = once(() => foldText(text, lookAlikes, plainForm))
  // For a reading that is whole lines, a place within a line is none.
  const literal =
    (find: (oldString: string) => Span[]): Find =>
    ({ oldString, wholeLines }) =>
      wholeLines ? find(oldString).filter((span) => coversLines(text, span)) : find(oldString)
  const byKey = (
    key: LineKey,
    keep: (file: readonly Line[], old: readonly Line[]) => boolean = () => true,
  ): Find => {
    const find = createLineSearch(lines, key, limit)
    return ({ oldString }) => {
      const old = splitLines(oldString)
      const starts = find(old).filter((start) => keep(lines().slice(start, start + old.length), old))
      return starts.flatMap((start) => lineSpan(lines(), old, { start, count: old.length }))
    }
  }
  const exact: [Strategy, Find][] = [
    ["exact", literal((oldString) => exactSpans(text, oldString, places))],
    ["line-endings", literal((oldString) => foldedSpans(unified(), toLf(oldString), places))],
  ]
  const strict: [Strategy, Find][] = [
    ["trailing-whitespace", byKey(trimmed, differAtEnds)],
    ["indentation", byKey(trimmed, differByIndent)],
    ["line-trimmed", byKey(trimmed)],
    ["whitespace", byKey(collapsed)],
    ["whitespace", byKey(unspaced)],
    ["look-alikes", literal((oldString) => foldedSpans(plainText(), toPlain(oldString), unique))],
    ["look-alike-lines", byKey(plain)],
  ]
  const loose: [Strategy, Find][] = [
    [
      "block-anchors",
      ({ oldString, decorations }) => {
        // Its ends are all that a block is known by: none may be taken off.
        if (decorations.includes("blank-edges")) return []
        const old = splitLines(oldString)
        const starts = findBlocks(lines(), old)
        return starts.flatMap((start) => lineSpan(lines(), old, { start, count: old.length }))
      },
    ],
    [
      "left-out-lines",
      ({ oldString }) => {
        const old = splitLines(oldString)
        const blocks = findGappedBlocks(lines(), old)
        return blocks.flatMap(({ start, quoted }) => lineSpan(lines(), old, { start, count: quoted.length }))
      },
    ],
  ]
  return {
    exact,
    strict,
    loose,
    nearest: (oldString: string) => nearestText(lines(), splitLines(oldString)),
    /**
     * A place that is not exact, with others at which the same text is bent more, or where one line is another but the
     * rest exact: which of them was copied wrong cannot be told.
     */
    withRivals(reading: Reading, strategy: Strategy, spans: Span[]): Span[] {
      const [only] = spans
      if (!only) return spans
      const old = splitLines(reading.oldString)
      const misquoted = keepsIndentation.has(strategy) ? [] : findMisquoted(lines(), old)
      const others = [
        ...strict.flatMap(([, find]) => find(reading)),
        ...misquoted.flatMap((start) => lineSpan(lines(), old, { start, count: old.length })),
      ]
      const rivals = others.filter(({ start, end }) => end <= only.start || start >= only.end)
      const places = new Map([only, ...rivals].map((span) => [span.start, span]))
      return [...places.values()].sort((a, b) => a.start - b.start)
    },
    /** Where three lines or more stand as they are, apart from white space around them; from 1. */
    lineOfWhole(newString: string): number | undefined {
      const fresh = splitLines(newString)
      if (fresh.filter((line) => line.text.trim() !== "").length < minWhole) return undefined
      const [start] = createLineSearch(lines, trimmed, 1)(fresh)
      return start === undefined ? undefined : start + 1
    },
  }
}

/** Fewer lines stand in many files by chance. */
const minWhole = 3

/** By these the first character of every line is the file's. */
const keepsIndentation: ReadonlySet<Strategy> = new Set<Strategy>([
  "exact",
  "line-endings",
  "trailing-whitespace",
  "look-alikes",
])

const lineEndings = /\r\n?/g

/** Made when it is asked for first. */
function once<T>(make: () => T): () => T {
  let made: { value: T } | undefined
  return () => {
    made ??= { value: make() }
    return made.value
  }
}

/** Half of a line ending is none: what would be left of it is another. */
function exactSpans(text: string, oldString: string, places: Places): Span[] {
  return places(text, oldString)
    .map((start) => ({ start, end: start + oldString.length }))
    .filter(({ start, end }) => !splitsBreak(text, start) && !splitsBreak(text, end))
}

function splitsBreak(text: string, at: number): boolean {
  return text.charAt(at - 1) === "\r" && text.charAt(at) === "\n"
}

/** A match that begins or ends within a replacement is none. */
function foldedSpans(folded: FoldedText, needle: string, places: Places): Span[] {
  const spans: Span[] = []
  for (const at of places(folded.text, needle)) {
    const [start, end] = [folded.original(at), folded.original(at + needle.length)]
    if (start !== undefined && end !== undefined) spans.push({ start, end })
  }
  return spans
}

function lineSpan(
  lines: readonly Line[],
  old: readonly Line[],
  { start, count }: { start: number; count: number },
): Span[] {
  const [first, last] = [lines[start], lines[start + count - 1]]
  if (!first || !last) return []
  const eol = old.at(-1)?.eol !== ""
  return [{ start: first.start, end: last.start + last.text.length + (eol ? last.eol.length : 0) }]
}

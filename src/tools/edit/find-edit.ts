import { hasLostEscapes, isDisputed, isEscapedBeyond, type Reading, readingsOf } from "./readings.ts"
import {
  findNearlyExact,
  openSearch,
  type SearchedFile,
  type Strategy,
  type StrategyName,
  strategies,
} from "./strategies.ts"
import { isBlank, type Line, lineNumbers, pairSimilarity, type Span, splitLines, toLf } from "./text.ts"

/**
 * The result of {@link findEdit}. `strategy` is the strictest strategy that found the text, and `reading` is the
 * interpretation that the strategy used. `count` is a lower bound if it reaches {@link countLimit}. `lines` contains the
 * line numbers, from 1, of the first ten matches.
 */
export type EditMatch =
  | { kind: "found"; strategy: StrategyName; reading: Reading; spans: Span[] }
  | { kind: "ambiguous"; strategy: StrategyName; reading: Reading; count: number; lines: number[] }
  | { kind: "disputed"; reading: Reading; line: number }
  | { kind: "done"; line: number }
  | { kind: "missing"; nearest?: NearestText; exactOnly: boolean }

/**
 * Maximum length, in characters, of a text that is searched with all strategies. Longer texts are searched only with
 * literal strategies.
 */
export const maxFuzzyLength = 5_000_000

/** Maximum number of replacements in one call. */
export const maxReplacements = 1_000_000

const maxCounted = 10_000
const maxNamedLines = 10

/** Returns the number of matches at which {@link findEdit} stops counting. */
export function countLimit(replaceAll: boolean): number {
  return replaceAll ? maxReplacements + 1 : maxCounted
}

/** The texts of an edit. `oldString` is not empty. */
export interface EditTexts {
  oldString: string
  newString: string
  replaceAll: boolean
}

/**
 * Finds `oldString` with the strictest strategy that matches. A `found` result has several spans only for a literal
 * match with `replaceAll`. In all other cases, several matches are `ambiguous`. A `disputed` result means that the text
 * was found but can mean two different edits. A `done` result means that only similar text was found, and the file
 * already contains the new text. `without` contains the names of strategies and decorations to disable, for
 * measurements.
 */
export function findEdit(
  text: string,
  edit: EditTexts,
  { without }: { without?: ReadonlySet<string> } = {},
): EditMatch {
  const exactOnly = text.length > maxFuzzyLength
  const readings = readingsOf(edit, without).slice(0, exactOnly ? 1 : undefined)
  const usable = strategies.filter(
    ({ name, kind }) => !without?.has(name) && (kind === "literal" || !exactOnly),
  )
  const whole = usable.filter(({ kind }) => kind !== "partial")
  const limit = countLimit(edit.replaceAll)
  const file = openSearch(text, { limit, overlapping: !edit.replaceAll })
  for (const reading of readings) {
    for (const { name, find } of whole) {
      const spans = find(file, reading)
      if (spans.length === 0) continue
      const isUnclear = spans.length === 1 && !isPlain(name, reading)
      const all = isUnclear ? withRivals(file, spans, { reading, name, whole }) : spans
      return toMatch({ text, reading, readings, strategy: name, spans: all, ...edit })
    }
  }
  for (const strategy of usable.filter(({ kind }) => kind === "partial")) {
    const found = nearestReading(text, readings, (reading) => strategy.find(file, reading))
    if (!found) continue
    const line = found.spans.length === 1 ? lineOfWhole(file.lines(), found.reading.newString) : undefined
    return line === undefined
      ? toMatch({ text, readings, strategy: strategy.name, ...found, ...edit })
      : { kind: "done", line }
  }
  const nearest = exactOnly ? undefined : nearestText(file.lines(), splitLines(edit.oldString))
  return { kind: "missing", exactOnly, ...(nearest && { nearest }) }
}

/** Adds other possible matches to an inexact match, because the model may have miscopied any of them. */
function withRivals(
  file: SearchedFile,
  spans: readonly Span[],
  { reading, name, whole }: { reading: Reading; name: StrategyName; whole: readonly Strategy[] },
): Span[] {
  const loose = whole.filter(({ kind }) => kind === "whole").flatMap(({ find }) => find(file, reading))
  const nearlyExact =
    name === "normalized-lines" ? findNearlyExact(file.lines(), splitLines(reading.oldString)) : []
  const apart = [...loose, ...nearlyExact].filter((rival) =>
    spans.every(({ start, end }) => rival.end <= start || rival.start >= end),
  )
  const all = new Map([...spans, ...apart].map((span) => [span.start, span]))
  return [...all.values()].sort((a, b) => a.start - b.start)
}

/** Returns true if the match uses the texts as given, and ignores no differences except in line endings. */
export function isPlain(strategy: StrategyName, { decorations }: Reading): boolean {
  return (strategy === "exact" || strategy === "line-endings") && decorations.length === 0
}

/**
 * Finds similar lines with each reading. The reading most similar to the match determines the new text. Returns the
 * matches of all readings, so that different matches are ambiguous.
 */
function nearestReading(
  text: string,
  readings: readonly Reading[],
  find: (reading: Reading) => Span[],
): { reading: Reading; spans: Span[] } | undefined {
  const all = readings.map((reading) => ({ reading, spans: find(reading) }))
  const fewest = all.find((each) => each.spans.length > 0)
  const found = all.filter(
    ({ reading, spans }) => spans.length > 0 && reading.wholeLines === fewest?.reading.wholeLines,
  )
  const spans = [
    ...new Map(
      found.flatMap((each) => each.spans).map((span) => [`${span.start}-${span.end}`, span]),
    ).values(),
  ]
  const [first] = spans
  if (!first) return undefined
  const similarity = pairSimilarity(toLf(text.slice(first.start, first.end)))
  const best = found
    .map(({ reading }) => ({ reading, score: similarity(toLf(reading.oldString)) }))
    .reduce((nearest, each) => (each.score > nearest.score ? each : nearest))
  return { reading: best.reading, spans }
}

function toMatch(found: {
  text: string
  reading: Reading
  readings: readonly Reading[]
  strategy: StrategyName
  spans: Span[]
  replaceAll: boolean
}): EditMatch {
  const { text, reading, strategy, spans } = found
  const starts = spans.slice(0, maxNamedLines).map((span) => span.start)
  const lines = lineNumbers(text, starts)
  const isReplaceable = found.replaceAll && isPlain(strategy, reading) && spans.length <= maxReplacements
  if (spans.length > 1 && !isReplaceable) {
    return { kind: "ambiguous", strategy, reading, count: spans.length, lines }
  }
  const isDoubtful = ({ start, end }: Span) =>
    isEscapedBeyond(reading, text.slice(start, end)) ||
    (strategy === "block-anchors" && hasLostEscapes(reading, text.slice(start, end)))
  if (isDisputed(reading, found.readings) || spans.some(isDoubtful))
    return { kind: "disputed", reading, line: lines[0] ?? 1 }
  return { kind: "found", strategy, reading, spans }
}

/** Minimum number of lines that are not blank. A shorter text occurs in many files by chance. */
const minWholeLines = 3

/**
 * Returns the line number, from 1, at which the file already contains all lines of the new text. Ignores white space
 * around lines. Returns undefined if the file does not contain these lines, or if the new text is too short.
 */
function lineOfWhole(lines: readonly Line[], newString: string): number | undefined {
  const fresh = splitLines(newString)
  if (fresh.filter((line) => !isBlank(line)).length < minWholeLines) return undefined
  const [texts, wanted] = [lines.map((line) => line.text.trim()), fresh.map((line) => line.text.trim())]
  const start = texts.findIndex((_, at) => wanted.every((text, offset) => texts[at + offset] === text))
  return start === -1 ? undefined : start + 1
}

/** The part of the file that is most similar to the text that was not found. */
export interface NearestText {
  /** Line number, from 1. */
  line: number
  /** Up to ten lines, each cut to 200 characters. */
  text: string
}

/** Maximum number of lines in a file. A longer file is not searched. */
const maxSearchedLines = 50_000
/** Maximum number of characters compared and shown per line. */
const maxLineLength = 200
const maxShownLines = 10
/** Minimum similarity. Text that is less similar does not help the model. */
const minSimilarity = 0.5

/**
 * Finds the line most similar to the longest line of `old`, and returns it with the lines around it. Returns undefined
 * if no line is similar or the file is too long.
 */
export function nearestText(lines: readonly Line[], old: readonly Line[]): NearestText | undefined {
  if (lines.length > maxSearchedLines) return undefined
  const wanted = old.map((line) => line.text.trim().slice(0, maxLineLength))
  const longest = wanted.reduce(
    (best, text, index) => (text.length > (wanted[best]?.length ?? 0) ? index : best),
    0,
  )
  const similarity = pairSimilarity(wanted[longest] ?? "")
  let near: number | undefined
  let most = minSimilarity
  for (const [index, line] of lines.entries()) {
    const score = similarity(line.text.trim().slice(0, maxLineLength))
    if (score <= most) continue
    most = score
    near = index
  }
  if (near === undefined) return undefined
  const first = Math.max(0, near - Math.min(longest, maxShownLines - 1))
  const shown = lines.slice(first, first + Math.min(Math.max(old.length, 1), maxShownLines))
  return { line: first + 1, text: shown.map((line) => line.text.slice(0, maxLineLength)).join("\n") }
}

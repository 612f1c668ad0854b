import { foldText } from "./fold-text.ts"
import { collapsed, differAtEnds, differByIndent, findBlocks, findLines, trimmed } from "./line-match.ts"
import { lookAlikes, plainForm } from "./look-alikes.ts"
import { type NearestText, nearestText } from "./nearest-text.ts"
import { candidates, occurrences } from "./occurrences.ts"
import { type Line, lineNumbers, splitLines, toLf } from "./text-lines.ts"
import { type EscapeForm, unescapeText } from "./unescape-text.ts"

/** How old text was found, strictest first: the order in which the ways are tried. */
export type Strategy =
  | "exact"
  | "line-endings"
  | "trailing-whitespace"
  | "indentation"
  | "line-trimmed"
  | "whitespace"
  | EscapeForm
  | "look-alikes"
  | "block-anchors"

/** A piece of the text, in UTF-16 units from 0, `end` not included. */
export interface Span {
  start: number
  end: number
}

/** `strategy`: the strictest that found anything. `lines`: where, from 1, the first ten. */
export type EditMatch =
  | { kind: "found"; strategy: Strategy; spans: Span[] }
  | { kind: "ambiguous"; strategy: Strategy; count: number; lines: number[] }
  | { kind: "missing"; nearest?: NearestText; exactOnly: boolean }

/** Above this many characters only the strategies that keep every character are tried. */
export const maxFuzzyLength = 5_000_000

/** As many places as one call may replace. */
export const maxReplacements = 1_000_000

const maxCounted = 10_000
const maxNamedLines = 10

/**
 * Looks for `oldString`, which is not empty. `found` has one span; several only with `replaceAll` and a strategy that
 * keeps every character but line endings. Any other text that fits several places is `ambiguous`, and nothing is
 * guessed. Spans of the strategies that compare lines cover whole lines, the last line ending where `oldString` has
 * one.
 */
export function findEdit(text: string, oldString: string, options: { replaceAll: boolean }): EditMatch {
  const exactOnly = text.length > maxFuzzyLength
  const search = createSearch(text, oldString, options.replaceAll)
  for (const [strategy, find] of exactOnly ? search.exact : [...search.exact, ...search.fuzzy]) {
    const spans = find()
    if (spans.length === 0) continue
    const all = options.replaceAll && isLiteral(strategy) && spans.length <= maxReplacements
    if (spans.length === 1 || all) return { kind: "found", strategy, spans }
    const starts = spans.slice(0, maxNamedLines).map((span) => span.start)
    return { kind: "ambiguous", strategy, count: spans.length, lines: lineNumbers(text, starts) }
  }
  const nearest = exactOnly ? undefined : search.nearest()
  return nearest ? { kind: "missing", nearest, exactOnly } : { kind: "missing", exactOnly }
}

/** True if every character but line endings is as it was given. */
function isLiteral(strategy: Strategy): boolean {
  return strategy === "exact" || strategy === "line-endings"
}

/** At most so many spans as the search may find. */
type Find = () => Span[]

/** Where a text begins in another. */
type Places = (text: string, needle: string) => number[]

function createSearch(text: string, oldString: string, replaceAll: boolean) {
  const limit = replaceAll ? maxReplacements + 1 : maxCounted
  const unique: Places = (within, needle) => candidates(within, needle, limit)
  const places: Places = replaceAll ? (within, needle) => occurrences(within, needle, limit) : unique
  let split: { lines: Line[]; old: Line[]; same: number[] } | undefined
  // Made when the first strategy that compares lines is reached, and shared by all of them.
  const lineWise = () => {
    if (split) return split
    const [lines, old] = [splitLines(text), splitLines(oldString)]
    split = { lines, old, same: findLines(lines, old, trimmed, limit) }
    return split
  }
  const filtered = (keep: (lines: readonly Line[], old: readonly Line[]) => boolean) => () => {
    const { lines, old, same } = lineWise()
    return lineSpans(
      lines,
      old,
      same.filter((start) => keep(lines.slice(start, start + old.length), old)),
    )
  }
  const escaped = (form: EscapeForm) => () => {
    const plain = unescapeText(oldString, form)
    return plain === oldString || plain === "" ? [] : literalSpans(text, plain, unique)
  }
  const exact: [Strategy, Find][] = [
    ["exact", () => spansAt(places(text, oldString), oldString.length)],
    ["line-endings", () => foldedSpans(text, oldString, /\r\n?/g, toLf, places)],
  ]
  const fuzzy: [Strategy, Find][] = [
    ["trailing-whitespace", filtered(differAtEnds)],
    ["indentation", filtered(differByIndent)],
    ["line-trimmed", filtered(() => true)],
    [
      "whitespace",
      () => {
        const { lines, old } = lineWise()
        return lineSpans(lines, old, findLines(lines, old, collapsed, limit))
      },
    ],
    ["escapes", escaped("escapes")],
    ["escaped-quotes", escaped("escaped-quotes")],
    ["look-alikes", () => foldedSpans(text, oldString, lookAlikes, plainForm, unique)],
    [
      "block-anchors",
      () => {
        const { lines, old } = lineWise()
        return lineSpans(lines, old, findBlocks(lines, old))
      },
    ],
  ]
  return { exact, fuzzy, nearest: () => nearestText(lineWise().lines, lineWise().old) }
}

function spansAt(starts: readonly number[], length: number): Span[] {
  return starts.map((start) => ({ start, end: start + length }))
}

/** Exact, or exact but for line endings. */
function literalSpans(text: string, oldString: string, places: Places): Span[] {
  const starts = places(text, oldString)
  if (starts.length > 0) return spansAt(starts, oldString.length)
  return foldedSpans(text, oldString, /\r\n?/g, toLf, places)
}

/** Both texts with everything replaced that the pattern finds; a match that begins or ends within one is none. */
function foldedSpans(
  text: string,
  oldString: string,
  pattern: RegExp,
  replace: (found: string) => string,
  places: Places,
): Span[] {
  const folded = foldText(text, pattern, replace)
  const needle = foldText(oldString, pattern, replace).text
  const spans: Span[] = []
  for (const at of places(folded.text, needle)) {
    const [start, end] = [folded.original(at), folded.original(at + needle.length)]
    if (start !== undefined && end !== undefined) spans.push({ start, end })
  }
  return spans
}

function lineSpans(lines: readonly Line[], old: readonly Line[], starts: readonly number[]): Span[] {
  const eol = old.at(-1)?.eol !== ""
  return starts.flatMap((index) => {
    const [first, last] = [lines[index], lines[index + old.length - 1]]
    if (!first || !last) return []
    const end = last.start + last.text.length + (eol ? last.eol.length : 0)
    return [{ start: first.start, end }]
  })
}

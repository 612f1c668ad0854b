import { pairSimilarity } from "../../util/similarity.ts"
import { createEditSearch, type Find } from "./edit-search.ts"
import type { NearestText } from "./nearest-text.ts"
import { hasLostEscapes, isDisputed, isEscapedBeyond, type Reading, readingsOf } from "./readings.ts"
import type { Span } from "./spans.ts"
import { isLiteral, type Strategy } from "./strategy.ts"
import { lineNumbers, toLf } from "./text-lines.ts"

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
  const search = createEditSearch(text, {
    limit: edit.replaceAll ? maxReplacements + 1 : maxCounted,
    apart: edit.replaceAll,
  })
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
  const likenessOf = pairSimilarity(toLf(text.slice(first.start, first.end)))
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

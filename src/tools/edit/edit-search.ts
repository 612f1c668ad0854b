import { findBlocks } from "./block-match.ts"
import { foldText } from "./fold-text.ts"
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
import { findMisquoted } from "./misquoted-line.ts"
import { type NearestText, nearestText } from "./nearest-text.ts"
import type { Reading } from "./readings.ts"
import { exactSpans, foldedSpans, lineSpan, placesOf, type Span } from "./spans.ts"
import { keepsIndentation, type Strategy } from "./strategy.ts"
import { coversLines, type Line, splitLines, toLf } from "./text-lines.ts"

/** Where a reading's old text stands: at most so many spans as the search may find. */
export type Find = (reading: Reading) => Span[]

/** The ways to look for old text in one file, each strictest first. */
export interface EditSearch {
  /** They keep every character but line endings. */
  exact: [Strategy, Find][]
  /** They look past white space and look-alikes, in every line. */
  strict: [Strategy, Find][]
  /** To them some lines are others, or missing. */
  loose: [Strategy, Find][]
  /**
   * A place that is not exact, with others at which the same text is bent more, or where one line is another but the
   * rest exact: which of them was copied wrong cannot be told.
   */
  withRivals(reading: Reading, strategy: Strategy, spans: Span[]): Span[]
  /** Where three lines or more stand as they are, apart from white space around them; from 1. */
  lineOfWhole(newString: string): number | undefined
  nearest(oldString: string): NearestText | undefined
}

/** Fewer lines stand in many files by chance. */
const minWhole = 3

const lineEndings = /\r\n?/g

/**
 * `limit`: how many places are looked for. `apart`: those are wanted that can all be replaced. The file is taken to lines,
 * folded and so on once, when a way needs it.
 */
export function createEditSearch(
  text: string,
  { limit, apart }: { limit: number; apart: boolean },
): EditSearch {
  const unique = placesOf(limit, "overlapping")
  const places = apart ? placesOf(limit, "apart") : unique
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
      return blocksAt(starts, old)
    }
  }
  const strict: [Strategy, Find][] = [
    ["trailing-whitespace", byKey(trimmed, differAtEnds)],
    ["indentation", byKey(trimmed, differByIndent)],
    ["line-trimmed", byKey(trimmed)],
    ["whitespace", byKey(collapsed)],
    ["whitespace", byKey(unspaced)],
    ["look-alikes", literal((oldString) => foldedSpans(plainText(), toPlain(oldString), unique))],
    ["look-alike-lines", byKey(plain)],
  ]
  return {
    exact: [
      ["exact", literal((oldString) => exactSpans(text, oldString, places))],
      ["line-endings", literal((oldString) => foldedSpans(unified(), toLf(oldString), places))],
    ],
    strict,
    loose: [
      ["block-anchors", blockSpans],
      ["left-out-lines", gappedSpans],
    ],
    withRivals(reading, strategy, spans) {
      const [only] = spans
      if (!only) return spans
      const old = splitLines(reading.oldString)
      const misquoted = keepsIndentation(strategy) ? [] : findMisquoted(lines(), old)
      const others = [...strict.flatMap(([, find]) => find(reading)), ...blocksAt(misquoted, old)]
      const rivals = others.filter(({ start, end }) => end <= only.start || start >= only.end)
      const all = new Map([only, ...rivals].map((span) => [span.start, span]))
      return [...all.values()].sort((a, b) => a.start - b.start)
    },
    lineOfWhole(newString) {
      const fresh = splitLines(newString)
      if (fresh.filter((line) => line.text.trim() !== "").length < minWhole) return undefined
      const [start] = createLineSearch(lines, trimmed, 1)(fresh)
      return start === undefined ? undefined : start + 1
    },
    nearest: (oldString) => nearestText(lines(), splitLines(oldString)),
  }

  function blockSpans({ oldString, decorations }: Reading): Span[] {
    // Its ends are all that a block is known by: none may be taken off.
    if (decorations.includes("blank-edges")) return []
    const old = splitLines(oldString)
    return blocksAt(findBlocks(lines(), old), old)
  }

  function gappedSpans({ oldString }: Reading): Span[] {
    const old = splitLines(oldString)
    const blocks = findGappedBlocks(lines(), old)
    return blocks.flatMap(({ start, quoted }) => lineSpan(lines(), old, { start, count: quoted.length }))
  }

  /** As many lines as the old ones, at each of the places. */
  function blocksAt(starts: readonly number[], old: readonly Line[]): Span[] {
    return starts.flatMap((start) => lineSpan(lines(), old, { start, count: old.length }))
  }
}

/** Made when it is asked for first. */
function once<T>(make: () => T): () => T {
  let made: { value: T } | undefined
  return () => {
    made ??= { value: make() }
    return made.value
  }
}

import { lookAlikes, plainForm, toPlain } from "./look-alikes.ts"
import type { Reading } from "./readings.ts"
import {
  commonSequence,
  coversLines,
  createLineIndex,
  exactSpans,
  foldedSpans,
  foldText,
  type Line,
  type LineIndex,
  lineSpan,
  type Span,
  similarity,
  splitLines,
  toLf,
  wordsOf,
} from "./text.ts"

/** The name of a strategy, as shown in the result of an edit. */
export type StrategyName =
  | "exact"
  | "line-endings"
  | "look-alikes"
  | "normalized-lines"
  | "block-anchors"
  | "left-out-lines"

/** A method for finding the old text. */
export interface Strategy {
  name: StrategyName
  /**
   * How strictly the strategy compares. With `literal`, all characters except line endings are equal. With `whole`, the
   * whole text is equal in a normalized form. With `partial`, some lines differ.
   */
  kind: "literal" | "whole" | "partial"
  find(file: SearchedFile, reading: Reading): Span[]
}

/**
 * All strategies, strictest first. The percentage is the share of the inexact edits in the benchmark that only this
 * strategy recovers (docs/decisions/010-edit-strategies.md).
 */
export const strategies: readonly Strategy[] = [
  /**
   * Compares the text unchanged: 0%, because the looser strategies also find such text. Only this strategy and
   * `line-endings` allow `replaceAll`.
   */
  { name: "exact", kind: "literal", find: (file, reading) => file.exact(reading) },
  /** Treats all line endings as equal: 0.02%, and every `replaceAll` of several lines in a CRLF file. */
  { name: "line-endings", kind: "literal", find: (file, reading) => file.anyEol(reading) },
  /**
   * Treats typographic characters as equal to their ASCII forms: 0.04%, and edits within a line, which the benchmark
   * does not contain.
   */
  { name: "look-alikes", kind: "whole", find: (file, reading) => file.anyLook(reading) },
  /** Compares whole lines like `look-alikes`, but ignores white space: 12.3%. */
  { name: "normalized-lines", kind: "whole", find: findNormalized },
  /** Finds a block with equal first and last lines and similar lines between them: 7.9%. */
  { name: "block-anchors", kind: "partial", find: findBlocks },
  /** Accepts a mark such as `...` for omitted lines: 1.7%. */
  { name: "left-out-lines", kind: "partial", find: findLeftOut },
]

/** A file in the forms that strategies search. Each form is computed once, when it is first needed. */
export interface SearchedFile {
  lines(): readonly Line[]
  /** Returns the index of all lines by {@link normalizedLine}. */
  index(): LineIndex
  exact(reading: Reading): Span[]
  /** Finds the old text, treating all line endings as equal. */
  anyEol(reading: Reading): Span[]
  /** Finds the old text, treating look-alikes as equal. */
  anyLook(reading: Reading): Span[]
  /** Maximum number of spans to find. */
  limit: number
}

/**
 * Prepares a file for searches. If `overlapping` is false, `exact` and `anyEol` omit overlapping occurrences.
 * Overlapping occurrences show that a text is not unique, but cannot all be replaced.
 */
export function openSearch(
  text: string,
  { limit, overlapping }: { limit: number; overlapping: boolean },
): SearchedFile {
  const lines = once(() => splitLines(text))
  const unified = once(() => foldText(text, /\r\n?/g, toLf))
  const plain = once(() => foldText(text, lookAlikes, plainForm))
  /** Removes spans within a line if the reading matches only whole lines. */
  const allowed = (spans: Span[], { wholeLines }: Reading) =>
    wholeLines ? spans.filter((span) => coversLines(text, span)) : spans
  return {
    lines,
    index: once(() => createLineIndex(lines().map(normalizedLine))),
    exact: (reading) => allowed(exactSpans(text, reading.oldString, { limit, overlapping }), reading),
    anyEol: (reading) =>
      allowed(foldedSpans(unified(), toLf(reading.oldString), { limit, overlapping }), reading),
    anyLook: (reading) =>
      allowed(foldedSpans(plain(), toPlain(reading.oldString), { limit, overlapping: true }), reading),
    limit,
  }
}

function once<T>(make: () => T): () => T {
  let made: { value: T } | undefined
  return () => {
    made ??= { value: make() }
    return made.value
  }
}

/** Returns a line in plain form. Collapses white space between words to one space and removes all other white space. */
export function normalizedLine({ text }: Pick<Line, "text">): string {
  return toPlain(text)
    .trim()
    .replace(/[ \t]+/g, " ")
    .replace(/(?<![\p{L}\p{N}_]) | (?![\p{L}\p{N}_])/gu, "")
}

function findNormalized(file: SearchedFile, { oldString }: Reading): Span[] {
  const old = splitLines(oldString)
  const keys = old.map(normalizedLine)
  // Blank lines alone do not determine a location.
  if (keys.every((key) => key === "")) return []
  const starts = file.index()(keys, file.limit)
  return starts.flatMap((start) => lineSpan(file.lines(), old, { start, count: old.length }))
}

/**
 * Returns the spans where all old lines except one are exactly equal. Such spans make a looser match ambiguous.
 * Requires at least three old lines.
 */
export function findNearlyExact(lines: readonly Line[], old: readonly Line[]): Span[] {
  if (old.length < 3) return []
  const spans: Span[] = []
  for (let start = 0; start + old.length <= lines.length; start++) {
    let others = 0
    for (let at = 0; at < old.length && others < 2; at++) {
      if (lines[start + at]?.text !== old[at]?.text) others += 1
    }
    if (others === 1) spans.push(...lineSpan(lines, old, { start, count: old.length }))
  }
  return spans
}

/** Maximum number of blocks to compare. If there are more blocks, the old text is too common to be located. */
const maxBlocks = 500
/** Minimum similarity of the whole block and of each line. */
const matchFloors = { block: 0.85, line: 0.8 }
/** Minimum similarity at which another block makes the match ambiguous. */
const rivalFloors = { block: 0.7, line: 0.4 }

/**
 * Finds blocks of three or more lines whose first and last lines are equal and whose other lines are similar. Also
 * returns less similar blocks, so that the match is ambiguous.
 */
function findBlocks(file: SearchedFile, { oldString, decorations }: Reading): Span[] {
  const [old, lines] = [splitLines(oldString), file.lines()]
  const wanted = old.map((line) => line.text.trim())
  // Without its blank edges, the block has different anchors.
  if (wanted.length < 3 || decorations.includes("blank-edges")) return []
  const texts = lines.map((line) => line.text.trim())
  const starts: number[] = []
  for (let start = 0; start + wanted.length <= texts.length; start++) {
    if (sharesLines(texts, start, wanted)) starts.push(start)
    if (starts.length > maxBlocks) return []
  }
  const blockAt = (start: number) => texts.slice(start, start + wanted.length)
  const hasAnchors = (block: readonly string[]) =>
    block[0] === wanted[0] && wanted[0] !== "" && block.at(-1) === wanted.at(-1) && block.at(-1) !== ""
  let words: Set<string> | undefined
  const isInFile = (word: string) => {
    words ??= new Set(texts.flatMap((text) => wordsOf(text.toLowerCase())))
    return words.has(word)
  }
  const isMatch = (start: number) => {
    const block = blockAt(start)
    return (
      hasAnchors(block) &&
      isSimilarBlock(block, wanted, matchFloors) &&
      !hasForeignWord(block, wanted, isInFile)
    )
  }
  if (!starts.some(isMatch)) return []
  const rivals = starts.filter((start) => isSimilarBlock(blockAt(start), wanted, rivalFloors))
  const spans = rivals.flatMap((start) => lineSpan(lines, old, { start, count: old.length }))
  const all = new Map([...spans, ...findNearlyExact(lines, old)].map((span) => [span.start, span]))
  return [...all.values()].sort((a, b) => a.start - b.start)
}

/** Returns true if at least half of the lines of `wanted` equal the lines of `texts` from index `start` on. */
function sharesLines(texts: readonly string[], start: number, wanted: readonly string[]): boolean {
  let shared = 0
  for (const [index, text] of wanted.entries()) if (texts[start + index] === text) shared += 1
  return shared * 2 >= wanted.length
}

function isSimilarBlock(
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

/**
 * Returns true if a differing line has a word that occurs in the file but not in the line at this location. The old
 * text is then probably meant for a similar block. A misspelled word does not occur in the file. Ignores case.
 */
function hasForeignWord(
  texts: readonly string[],
  wanted: readonly string[],
  isInFile: (word: string) => boolean,
): boolean {
  return wanted.some((line, at) => {
    if (line === texts[at]) return false
    const own = new Set(wordsOf((texts[at] ?? "").toLowerCase()))
    return wordsOf(line.toLowerCase()).some((word) => !own.has(word) && isInFile(word))
  })
}

/**
 * Matches a line that stands for omitted lines: `...`, `// ... existing code ...`, `<!-- … -->`. Does not match
 * `...options,`, which is code.
 */
const mark =
  /^\s*(?:(?:\/\/|\/\*|#|--|<!--|;|%|\{\/\*)\s*[[(]?(?:\.{3}|…)|[[(]?(?:\.{3}|…)(?![\w$]))[^"'`=;{}]*(?:\*\/\}?|-->)?\s*$/

/** Returns true if the line is a mark that stands for omitted lines. */
export function isMark({ text }: Line): boolean {
  return mark.test(text)
}

/** Exclusive upper limit for the number of lines that a mark stands for. */
const maxMarked = 300
/**
 * A block at another location is a rival if it contains all quoted lines except at most one and is at most this many
 * lines longer.
 */
const rivalSlack = 3

function findLeftOut(file: SearchedFile, { oldString }: Reading): Span[] {
  const [lines, old] = [file.lines(), splitLines(oldString)]
  return findMarkedBlocks(lines, old).flatMap(({ start, quoted }) =>
    lineSpan(lines, old, { start, count: quoted.length }),
  )
}

/**
 * A block of lines in a file. For each line, `quoted` contains the index of the old line, or undefined if the old text
 * omits it.
 */
export interface MarkedBlock {
  start: number
  quoted: (number | undefined)[]
}

/**
 * Finds blocks that contain the old lines, with any lines in place of the marks. Ignores trailing white space. Returns
 * several blocks if the lines match in more than one way, or if a similar block elsewhere makes the match ambiguous.
 */
export function findMarkedBlocks(lines: readonly Line[], old: readonly Line[]): MarkedBlock[] {
  const parts = splitAtMarks(old)
  if (parts.length < 2 || parts.some((part) => part.length === 0)) return []
  const texts = lines.map((line) => line.text.trimEnd())
  const wanted = old.map((line) => line.text.trimEnd())
  if (!wanted[0] || !wanted.at(-1)) return []
  const starts = [...texts.keys()].filter((index) => texts[index] === wanted[0])
  const blocks = starts.flatMap((start) =>
    waysFrom(start, parts, texts, wanted).map((quoted) => ({ start, quoted })),
  )
  const [only, ...more] = blocks
  return only && more.length === 0
    ? [
        only,
        ...rivalsOf(
          only,
          texts,
          parts.flat().map((at) => wanted[at] ?? ""),
        ),
      ]
    : blocks
}

/** Returns the indexes of the lines before, between and after the marks. */
function splitAtMarks(old: readonly Line[]): number[][] {
  const parts: number[][] = [[]]
  for (const [index, line] of old.entries()) {
    if (isMark(line)) parts.push([])
    else parts.at(-1)?.push(index)
  }
  return parts
}

/** Returns up to two alignments of the parts with the file, beginning at line `start`. */
function waysFrom(
  start: number,
  parts: readonly number[][],
  texts: readonly string[],
  wanted: readonly string[],
): (number | undefined)[][] {
  let ways: (number | undefined)[][] = [[]]
  for (const [index, part] of parts.entries()) {
    const isAt = (line: number) => part.every((at, offset) => texts[line + offset] === wanted[at])
    const skips = Array.from({ length: index === 0 ? 1 : maxMarked }, (_, skip) => skip)
    ways = ways
      .flatMap((quoted) =>
        skips
          .filter((skip) => isAt(start + quoted.length + skip))
          .slice(0, 2)
          .map((skip) => [...quoted, ...new Array<undefined>(skip).fill(undefined), ...part]),
      )
      .slice(0, 2)
  }
  return ways
}

/**
 * Finds a block at another location that contains at least two quoted lines, and all quoted lines except at most one,
 * in order.
 */
function rivalsOf(block: MarkedBlock, texts: readonly string[], wanted: readonly string[]): MarkedBlock[] {
  const quoted = wanted.filter((text) => text !== "")
  const reach = block.quoted.length + rivalSlack
  const end = block.start + block.quoted.length
  for (const [start, text] of texts.entries()) {
    if (text === "" || (text !== quoted[0] && text !== quoted[1])) continue
    if (start < end && start + reach > block.start) continue
    const near = texts.slice(start, start + reach)
    const same = (a: number, b: number) => quoted[a] === near[b]
    const shared = commonSequence({ old: quoted.length, fresh: near.length, same })
    if (shared.length >= Math.max(2, quoted.length - 1)) return [{ start, quoted: near.map(() => undefined) }]
  }
  return []
}

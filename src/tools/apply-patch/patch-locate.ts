import { maxFuzzyLength } from "../edit/edit-match.ts"
import { collapsed, type LineKey, trimmed } from "../edit/line-match.ts"
import { lookAlikes, plainForm } from "../edit/look-alikes.ts"
import type { Line } from "../edit/text-lines.ts"
import type { PatchHunk } from "./patch-parse.ts"

/** How the lines of a hunk were found, strictest first: the order in which the ways are tried. */
export type PatchStrategy = "exact" | "trailing-whitespace" | "line-trimmed" | "whitespace" | "look-alikes"

/** Where a hunk belongs: `start` is the index of a line, `count` how many lines of the file it covers. */
export interface Place {
  kind: "found"
  strategy: PatchStrategy
  start: number
  count: number
}

/** `lines`: numbers from 1 of places that all fit, the first ten. */
export type Located =
  | Place
  | { kind: "ambiguous"; strategy: PatchStrategy; total: number; lines: number[] }
  | { kind: "missing" }
  | { kind: "missing-anchor"; anchor: string }
  | { kind: "no-context" }

const strategies: readonly [PatchStrategy, LineKey][] = [
  ["exact", (text) => text],
  ["trailing-whitespace", (text) => text.trimEnd()],
  ["line-trimmed", trimmed],
  ["whitespace", collapsed],
  ["look-alikes", (text) => text.replace(lookAlikes, plainForm).trim()],
]

const maxCandidates = 10_000
const maxNamedLines = 10

/**
 * Finds the places of hunks in a file. Of several places that fit, the one is taken that the anchor, the order of the
 * hunks (`cursor`: the line after the hunk before) or the end of the file points to; else none, nothing is guessed.
 * Anchors are hints only: lines that stand in one place alone are found without them.
 */
export function createLocator(
  lines: readonly Line[],
  length: number,
): (hunk: PatchHunk, cursor: number) => Located {
  const usable = length > maxFuzzyLength ? strategies.slice(0, 1) : strategies
  const indexes = new Map<PatchStrategy, Index>()
  const indexFor = (strategy: PatchStrategy, key: LineKey): Index => {
    const index = indexes.get(strategy) ?? createIndex(lines, key)
    indexes.set(strategy, index)
    return index
  }

  return (hunk, cursor) => {
    const old = hunk.lines.flatMap(({ kind, text }) => (kind === "add" ? [] : [text]))
    if (old.length === 0) return locateInsertion(lines, hunk, cursor)
    for (const [strategy, key] of usable) {
      const keys = old.map(key)
      // Blank lines alone stand everywhere: they show no place.
      if (keys.every((text) => text.trim() === "")) continue
      const starts = indexFor(strategy, key)(keys)
      if (starts.length === 0) continue
      const start = choose(starts, { lines, hunk, cursor, count: old.length, strategy })
      if (start !== undefined) return { kind: "found", strategy, start, count: old.length }
      return {
        kind: "ambiguous",
        strategy,
        total: starts.length,
        lines: starts.slice(0, maxNamedLines).map((index) => index + 1),
      }
    }
    return { kind: "missing" }
  }
}

/** Where these keys stand one below the other: indexes of first lines, also of places that overlap. */
type Index = (keys: readonly string[]) => number[]

/** Searched as one text, in which a line ending stands on both sides of every line: the engine's search is linear. */
function createIndex(lines: readonly Line[], key: LineKey): Index {
  const text = `\n${lines.map((line) => `${key(line.text)}\n`).join("")}`
  return (keys) => {
    const needle = `\n${keys.map((line) => `${line}\n`).join("")}`
    const found: number[] = []
    let [line, counted] = [0, 0]
    for (let at = text.indexOf(needle); at !== -1; at = text.indexOf(needle, at + 1)) {
      for (; counted < at; counted = text.indexOf("\n", counted + 1)) line += 1
      found.push(line)
      if (found.length === maxCandidates) break
    }
    return found
  }
}

interface Choice {
  lines: readonly Line[]
  hunk: PatchHunk
  cursor: number
  count: number
  strategy: PatchStrategy
}

function choose(starts: readonly number[], choice: Choice): number | undefined {
  const { lines, hunk, cursor, count, strategy } = choice
  if (starts.length === 1) return starts[0]
  if (hunk.atEnd) return starts.find((start) => start + count === lines.length)
  const anchor = findAnchors(lines, hunk.anchors, cursor)
  const from = anchor.kind === "found" ? anchor.line : cursor
  const after = starts.filter((start) => start >= from)
  // The lines below an anchor are the next that read so, as long as they do read so.
  const nearest = anchor.kind === "found" && strategy === "exact"
  return nearest || after.length === 1 ? after[0] : undefined
}

function locateInsertion(lines: readonly Line[], hunk: PatchHunk, cursor: number): Located {
  const at = (start: number): Located => ({ kind: "found", strategy: "exact", start, count: 0 })
  if (hunk.atEnd || lines.length === 0) return at(lines.length)
  const anchor = findAnchors(lines, hunk.anchors, cursor)
  switch (anchor.kind) {
    case "found":
      return at(anchor.line + 1)
    case "missing":
      return { kind: "missing-anchor", anchor: anchor.anchor }
    case "ambiguous":
      return {
        kind: "ambiguous",
        strategy: "exact",
        total: anchor.lines.length,
        lines: anchor.lines.slice(0, maxNamedLines).map((index) => index + 1),
      }
    case "none":
      return { kind: "no-context" }
  }
}

type Anchor =
  | { kind: "none" }
  | { kind: "found"; line: number }
  | { kind: "missing"; anchor: string }
  | { kind: "ambiguous"; lines: number[] }

/** The first anchor must stand once, below the cursor or in the whole file; each further one is the next below. */
function findAnchors(lines: readonly Line[], anchors: readonly string[], cursor: number): Anchor {
  let found: number | undefined
  for (const anchor of anchors) {
    const all = linesLike(lines, anchor)
    const from = found === undefined ? cursor : found + 1
    const below = all.filter((line) => line >= from)
    const fitting = below.length > 0 || found !== undefined ? below : all
    if (fitting.length === 0) return { kind: "missing", anchor }
    if (found === undefined && fitting.length > 1) return { kind: "ambiguous", lines: fitting }
    found = fitting[0]
  }
  return found === undefined ? { kind: "none" } : { kind: "found", line: found }
}

/** Lines that are the anchor; where there are none, those that are it without white space, or begin with it. */
function linesLike(lines: readonly Line[], anchor: string): number[] {
  const wanted = anchor.trim()
  const ways: ((text: string) => boolean)[] = [
    (text) => text === anchor,
    (text) => text.trim() === wanted,
    (text) => text.trimStart().startsWith(wanted),
  ]
  for (const fits of ways) {
    const found = lines.flatMap((line, index) => (fits(line.text) ? [index] : []))
    if (found.length > 0) return found
  }
  return []
}

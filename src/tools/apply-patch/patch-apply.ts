import { TackleError } from "../../util/errors.ts"
import { type LineEdit, type Merged, mergeLines, type Unclear } from "../edit/apply-edit.ts"
import { maxFuzzyLength, nearestText } from "../edit/find-edit.ts"
import { normalizedLine } from "../edit/strategies.ts"
import { createLineIndex, eolFinder, type Line, type LineIndex, splitLines } from "../edit/text.ts"
import type { PatchHunk } from "./patch-parse.ts"

/** Thrown if a hunk cannot be applied. The message identifies the hunk and explains the reason. */
export class PatchMismatchError extends TackleError {
  constructor(message: string) {
    super(message, { code: "patch.mismatch", recoverable: true })
  }
}

/** The text of a file after a patch. */
export interface PatchedText {
  text: string
  /** For each hunk, the strategy that found the hunk, and its line number in the original file, from 1. */
  hunks: { strategy: PatchStrategy; line: number }[]
}

/**
 * Applies all hunks to the text. Context lines and lines outside the hunks do not change. New lines get the line ending
 * used at their location and, if the hunk matched only without its indentation, the file's indentation. The new file
 * ends with a line ending unless the last line of the old file had none. Throws {@link PatchMismatchError} if a hunk's
 * location is not found or is ambiguous, or if a hunk overlaps with another hunk or leaves the result unclear.
 */
export function applyHunks(text: string, hunks: readonly PatchHunk[], title: string): PatchedText {
  const lines = splitLines(text)
  const places = placeHunks({ text, lines, hunks, title })
  const eolAt = eolFinder(text)
  const result: Line[] = []
  let end = 0
  for (const { hunk, place } of places.toSorted((a, b) => inOrder(a.place, b.place))) {
    const file = lines.slice(place.start, place.start + place.count)
    const eol = eolAt(spanOf(lines, place)) ?? "\n"
    const replacement = replaced(hunk, place, { file, eol, isUsed: (character) => text.includes(character) })
    if ("unclear" in replacement)
      throw new PatchMismatchError(unclearText(replacement.unclear, hunk, place, title))
    result.push(...lines.slice(end, place.start), ...replacement)
    end = place.start + place.count
  }
  result.push(...lines.slice(end))
  return {
    text: joined(result, {
      eol: eolAt({ start: text.length, end: text.length }) ?? "\n",
      last: lines.at(-1),
    }),
    hunks: places.map(({ place }) => ({ strategy: place.strategy, line: place.start + 1 })),
  }
}

interface PlacedHunk {
  hunk: PatchHunk
  place: Place
}

function placeHunks(file: {
  text: string
  lines: readonly Line[]
  hunks: readonly PatchHunk[]
  title: string
}): PlacedHunk[] {
  const { lines, title } = file
  const locate = createLocator(lines, file.text.length)
  const placed: PlacedHunk[] = []
  let cursor = 0
  for (const hunk of file.hunks) {
    const place = locate(hunk, cursor)
    if (place.kind !== "found") throw new PatchMismatchError(mismatchText(place, hunk, lines, title))
    const other = placed.find((earlier) => overlap(earlier.place, place))
    if (other) {
      throw new PatchMismatchError(
        `${head(hunk, title)} changes the same lines of the file as the hunk at line ${other.hunk.line}. ` +
          "Nothing was changed. Merge the two hunks.",
      )
    }
    placed.push({ hunk, place })
    cursor = place.start + place.count
  }
  return placed
}

/**
 * Compares two hunks by location, for sorting. An insertion comes before a change to the lines at the same location.
 */
function inOrder(a: Place, b: Place): number {
  return a.start - b.start || a.count - b.count
}

function overlap(a: Place, b: Place): boolean {
  return a.start < b.start + b.count && b.start < a.start + a.count
}

function spanOf(lines: readonly Line[], { start, count }: Place): { start: number; end: number } {
  const first = lines[start] ?? lines.at(-1)
  const last = lines[start + count - 1]
  const from = first?.start ?? 0
  return { start: from, end: Math.max(from, last ? last.start + last.text.length : from) }
}

function replaced(
  hunk: PatchHunk,
  { strategy }: Place,
  edit: Pick<LineEdit, "file" | "eol" | "isUsed">,
): Line[] | Extract<Merged, { unclear: Unclear }> {
  const { file, eol } = edit
  if (strategy !== "exact") {
    const side = (left: "add" | "remove") =>
      hunk.lines.flatMap(({ kind, text }) => (kind === left ? [] : [{ text, eol: "\n", start: 0 }]))
    const merged = mergeLines({ ...edit, old: side("add"), new: side("remove") })
    return "text" in merged ? splitLines(merged.text) : merged
  }
  let at = 0
  return hunk.lines.flatMap(({ kind, text }) => {
    if (kind === "add") return [{ text, eol, start: 0 }]
    const own = file[at++]
    return kind === "context" && own ? [own] : []
  })
}

/** Joins the lines. Omits the final line ending if the last line of the file had no line ending. */
function joined(lines: readonly Line[], { eol, last }: { eol: string; last: Line | undefined }): string {
  const open = last !== undefined && last.eol === ""
  return lines
    .map((line, index) => line.text + (open && index === lines.length - 1 ? "" : line.eol || eol))
    .join("")
}

function head(hunk: PatchHunk, title: string): string {
  return `The hunk at line ${hunk.line} of the patch, for ${title},`
}

function unclearText(unclear: Unclear, hunk: PatchHunk, { start }: Place, title: string): string {
  const found = `${head(hunk, title)} was found at line ${start + 1} of the file, but`
  switch (unclear) {
    case "indentation":
      return `${found} its indentation differs, and the indentation of its new lines is unclear. Nothing was changed. Copy the lines with their indentation.`
    case "look-alikes":
      return `${found} with look-alike quotes, dashes or spaces, and it is unclear which form of these characters its new lines should contain. Nothing was changed. Copy the lines exactly, and write new lines with the characters you intend.`
    default:
      return `${found} does not match exactly, and it is unclear which lines of the file it keeps. Nothing was changed. Copy the lines exactly.`
  }
}

function mismatchText(
  located: Exclude<Located, Place>,
  hunk: PatchHunk,
  lines: readonly Line[],
  title: string,
): string {
  const subject = head(hunk, title)
  switch (located.kind) {
    case "no-context":
      return `${subject} only adds lines and does not say where to add them. Nothing was changed. Add context lines, or the line *** End of File.`
    case "missing-anchor":
      return `${subject} has the anchor "@@ ${located.anchor}", which was not found in the file, or not below the previous anchor. Nothing was changed. Read the file again.`
    case "ambiguous": {
      const more = located.total - located.lines.length
      const bound = located.total < maxCandidates ? "" : "at least "
      const named = `lines ${located.lines.join(", ")}${more > 0 ? ` and ${bound}${more} more` : ""}`
      return (
        `${subject} matches ${bound}${located.total} places, at ${named}. Nothing was changed. ` +
        "Add context lines until the hunk is unique, or a unique @@ line above it."
      )
    }
    case "missing": {
      const old = hunk.lines
        .filter(({ kind }) => kind !== "add")
        .map(({ text }) => ({ text, eol: "\n", start: 0 }))
      const near = nearestText(lines, old)
      const shown = near
        ? ` The most similar text begins at line ${near.line} of the file:\n${near.text}\n`
        : " "
      return `${subject} was not found in the file. Nothing was changed.${shown}Read the file again and copy its lines exactly.`
    }
  }
}

/** Name of the strategy that found a hunk. The strictest strategy is listed first. */
export type PatchStrategy = "exact" | "normalized-lines"

/** The location of a hunk: the index of its first line, and its number of lines in the file. */
export interface Place {
  kind: "found"
  strategy: PatchStrategy
  start: number
  count: number
}

/**
 * The result of locating a hunk. `total` is a lower bound if it reaches {@link maxCandidates}. `lines` contains the line
 * numbers, from 1, of the first ten matches.
 */
export type Located =
  | Place
  | { kind: "ambiguous"; strategy: PatchStrategy; total: number; lines: number[] }
  | { kind: "missing" }
  | { kind: "missing-anchor"; anchor: string }
  | { kind: "no-context" }

/**
 * The part of a line that each strategy compares. The `edit` tool also uses the second strategy. Other strategies, with
 * stricter handling of white space, were left out because they recovered only 0.1% of the edits
 * (docs/decisions/010-edit-strategies.md).
 */
const strategies: readonly [PatchStrategy, (line: { text: string }) => string][] = [
  ["exact", ({ text }) => text],
  ["normalized-lines", normalizedLine],
]

const maxCandidates = 10_000
const maxNamedLines = 10

/**
 * Returns a function that finds the location of a hunk. A unique match needs no anchor. If there are several matches
 * and neither the anchor, the order of the hunks nor the end of the file selects one of them, the result is
 * `ambiguous`. `cursor` is the index of the line after the previous hunk.
 */
function createLocator(lines: readonly Line[], length: number): (hunk: PatchHunk, cursor: number) => Located {
  const usable = length > maxFuzzyLength ? strategies.slice(0, 1) : strategies
  const indexes = new Map<PatchStrategy, LineIndex>()

  return (hunk, cursor) => {
    const old = hunk.lines.filter(({ kind }) => kind !== "add")
    if (old.length === 0) return locateInsertion(lines, hunk, cursor)
    for (const [strategy, key] of usable) {
      const keys = old.map(key)
      // Blank lines alone do not determine a location.
      if (keys.every((text) => text.trim() === "")) continue
      const index = indexes.get(strategy) ?? createLineIndex(lines.map(key))
      indexes.set(strategy, index)
      const starts = index(keys, maxCandidates)
      if (starts.length === 0) continue
      const start = choose(starts, { lines, hunk, cursor, count: old.length, strategy })
      if (start !== undefined) return { kind: "found", strategy, start, count: old.length }
      return {
        kind: "ambiguous",
        strategy,
        total: starts.length,
        lines: starts.slice(0, maxNamedLines).map((start) => start + 1),
      }
    }
    return { kind: "missing" }
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
  // An anchor selects the next match below it, but only among exact matches.
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

/**
 * Finds the line of the last anchor. The first anchor must be unique below the cursor. If it does not occur there, it
 * must be unique in the file. Each further anchor selects its next occurrence below the previous anchor.
 */
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

/**
 * Returns the indexes of the lines that equal the anchor. If no line is equal, ignores white space at both ends of the
 * lines. If still no line is equal, returns the indexes of the lines whose text starts with the anchor.
 */
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

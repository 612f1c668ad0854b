import { TackleError } from "../../util/errors.ts"
import { mergeLines } from "../edit/merge-lines.ts"
import { nearestText } from "../edit/nearest-text.ts"
import { eolFinder, type Line, splitLines } from "../edit/text-lines.ts"
import { createLocator, type Located, type PatchStrategy, type Place } from "./patch-locate.ts"
import type { PatchHunk } from "./patch-parse.ts"

/** A hunk that does not fit the file. The message says which, why, and what the file has in its place. */
export class PatchMismatchError extends TackleError {
  constructor(message: string) {
    super(message, { code: "patch.mismatch", recoverable: true })
  }
}

/** A file's text after its hunks. */
export interface PatchedText {
  text: string
  /** Per hunk: how it was found, and where, from 1. */
  hunks: { strategy: PatchStrategy; line: number }[]
}

/**
 * The text with all hunks applied; lines outside of them, and their context, stay as the file has them. New lines get
 * the line ending of their place, and the file ends with a line ending or without one as before. Where a hunk was
 * found by looking past indentation, its new lines get the file's. Throws {@link PatchMismatchError}.
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
    const replacement = replaced(hunk, place, { file, eol })
    if (replacement === undefined) throw new PatchMismatchError(indentationText(hunk, place, title))
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
        `${head(hunk, title)} covers the same lines of the file as the hunk at line ${other.hunk.line}. ` +
          "Nothing was changed. Make one hunk of them.",
      )
    }
    placed.push({ hunk, place })
    cursor = place.start + place.count
  }
  return placed
}

/** Lines that are put in front of others come before these. */
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
  { file, eol }: { file: readonly Line[]; eol: string },
): Line[] | undefined {
  if (strategy === "line-trimmed" || strategy === "whitespace") {
    const side = (left: "add" | "remove") =>
      hunk.lines.flatMap(({ kind, text }) => (kind === left ? [] : [{ text, eol: "\n", start: 0 }]))
    const merged = mergeLines({ file, old: side("add"), new: side("remove"), eol })
    return "text" in merged ? splitLines(merged.text) : undefined
  }
  let at = 0
  return hunk.lines.flatMap(({ kind, text }) => {
    if (kind === "add") return [{ text, eol, start: 0 }]
    const own = file[at++]
    return kind === "context" && own ? [own] : []
  })
}

/** Only a last line may be without a line ending, and it is where the file's last line was. */
function joined(lines: readonly Line[], { eol, last }: { eol: string; last: Line | undefined }): string {
  const open = last !== undefined && last.eol === ""
  return lines
    .map((line, index) => line.text + (open && index === lines.length - 1 ? "" : line.eol || eol))
    .join("")
}

function head(hunk: PatchHunk, title: string): string {
  return `The hunk at line ${hunk.line} of the patch, for ${title},`
}

function indentationText(hunk: PatchHunk, { start }: Place, title: string): string {
  return (
    `${head(hunk, title)} was found at line ${start + 1} of the file, but its indentation is not the file's, and how ` +
    "its new lines are to be indented cannot be told from it. Nothing was changed. Copy the lines with their indentation."
  )
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
      return `${subject} only adds lines and does not say where. Nothing was changed. Give the lines around the place, or *** End of File.`
    case "missing-anchor":
      return `${subject} looks for "@@ ${located.anchor}", which is no line of the file. Nothing was changed. Read the file again.`
    case "ambiguous": {
      const named = `lines ${located.lines.join(", ")}${located.total > located.lines.length ? "…" : ""}`
      return (
        `${subject} fits ${located.total} places, at ${named}. Nothing was changed. ` +
        "Give more lines around it until one place alone fits, or an @@ line that stands above it once."
      )
    }
    case "missing": {
      const old = hunk.lines
        .filter(({ kind }) => kind !== "add")
        .map(({ text }) => ({ text, eol: "\n", start: 0 }))
      const near = nearestText(lines, old)
      const shown = near ? ` The nearest text begins at line ${near.line} of the file:\n${near.text}\n` : " "
      return `${subject} was not found in it. Nothing was changed.${shown}Read the file again and copy its lines exactly.`
    }
  }
}

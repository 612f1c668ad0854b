import type { FoldedText } from "./fold-text.ts"
import { candidates, occurrences } from "./occurrences.ts"
import type { Line } from "./text-lines.ts"

/** A piece of the text, in UTF-16 units from 0, `end` not included. */
export interface Span {
  start: number
  end: number
}

/** Where a text begins in another. */
export type Places = (text: string, needle: string) => number[]

/** At most `limit` places: those that can be replaced together, or, to tell if a place is the only one, overlaps too. */
export function placesOf(limit: number, kind: "apart" | "overlapping"): Places {
  const find = kind === "apart" ? occurrences : candidates
  return (text, needle) => find(text, needle, limit)
}

/** Half of a line ending is none: what would be left of it is another. */
export function exactSpans(text: string, oldString: string, places: Places): Span[] {
  return places(text, oldString)
    .map((start) => ({ start, end: start + oldString.length }))
    .filter(({ start, end }) => !splitsBreak(text, start) && !splitsBreak(text, end))
}

/** A match that begins or ends within a replacement is none. */
export function foldedSpans(folded: FoldedText, needle: string, places: Places): Span[] {
  const spans: Span[] = []
  for (const at of places(folded.text, needle)) {
    const [start, end] = [folded.original(at), folded.original(at + needle.length)]
    if (start !== undefined && end !== undefined) spans.push({ start, end })
  }
  return spans
}

/** `count` whole lines from the one at `start` on; the last with its line ending where the last old line has one. */
export function lineSpan(
  lines: readonly Line[],
  old: readonly Line[],
  { start, count }: { start: number; count: number },
): Span[] {
  const [first, last] = [lines[start], lines[start + count - 1]]
  if (!first || !last) return []
  const eol = old.at(-1)?.eol !== ""
  return [{ start: first.start, end: last.start + last.text.length + (eol ? last.eol.length : 0) }]
}

function splitsBreak(text: string, at: number): boolean {
  return text.charAt(at - 1) === "\r" && text.charAt(at) === "\n"
}

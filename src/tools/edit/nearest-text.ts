import { pairSimilarity } from "../../util/similarity.ts"
import type { Line } from "./text-lines.ts"

/** Beyond this many lines nothing near is looked for. */
const maxLines = 50_000
/** What is compared and shown of a line, in characters. */
const maxLineLength = 200
const maxShownLines = 10
/** Below this the best is no help but noise. */
const floor = 0.5

/** The place that comes closest to a text that is not there. */
export interface NearestText {
  /** From 1. */
  line: number
  /** A few lines, each cut. */
  text: string
}

/** Looks for the line most like the longest line of `old`, and shows what stands around it in `lines`. */
export function nearestText(lines: readonly Line[], old: readonly Line[]): NearestText | undefined {
  if (lines.length > maxLines) return undefined
  const wanted = old.map((line) => line.text.trim().slice(0, maxLineLength))
  const telling = wanted.reduce(
    (best, text, index) => (text.length > (wanted[best]?.length ?? 0) ? index : best),
    0,
  )
  const near = bestLine(lines, wanted[telling] ?? "")
  if (near === undefined) return undefined
  const first = Math.max(0, near - Math.min(telling, maxShownLines - 1))
  const shown = lines.slice(first, first + Math.min(Math.max(old.length, 1), maxShownLines))
  return { line: first + 1, text: shown.map((line) => line.text.slice(0, maxLineLength)).join("\n") }
}

function bestLine(lines: readonly Line[], wanted: string): number | undefined {
  const compare = pairSimilarity(wanted)
  let best: number | undefined
  let most = floor
  for (const [index, line] of lines.entries()) {
    const score = compare(line.text.trim().slice(0, maxLineLength))
    if (score <= most) continue
    most = score
    best = index
  }
  return best
}

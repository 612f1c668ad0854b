import { structuredPatch } from "diff"
import type { Random } from "./random.ts"

/** One line of a change: kept, taken away or added. Without its line ending. */
export interface ChangedLine {
  kind: "kept" | "old" | "new"
  text: string
}

/**
 * One change that a person made to a file, with a few lines around it. The file is `before`, the lines that are kept or
 * old, and `after`, each ended by `\n`; only the last line of all may lack it.
 */
export interface RealEdit {
  path: string
  before: string
  lines: ChangedLine[]
  after: string
}

/** Longer changes are written whole rather than edited. */
const maxLines = 40
/** The text around a change that is kept, in lines on each side: enough for texts that resemble it. */
const maxAround = 150

/** The changes between two states of a file, each with one to three lines around it, as edits of the first state. */
export function realEdits(path: string, before: string, after: string, random: Random): RealEdit[] {
  const patch = structuredPatch(path, path, before, after, "", "", { context: 1 + random.below(3) })
  return patch.hunks.flatMap((hunk) => {
    const lines = hunk.lines.filter((line) => !line.startsWith("\\")).map(changedLine)
    const oldLines = lines.filter((line) => line.kind !== "new").length
    if (lines.length > maxLines || oldLines === 0) return []
    const all = before.split(/(?<=\n)/)
    const start = hunk.oldStart - 1
    const end = start + oldLines
    return {
      path,
      before: all.slice(Math.max(0, start - maxAround), start).join(""),
      lines,
      after: all.slice(end, end + maxAround).join(""),
    }
  })
}

/** The lines before the change, or after it. */
export function linesOf(edit: RealEdit, side: "old" | "new"): string[] {
  return edit.lines.filter((line) => line.kind === "kept" || line.kind === side).map((line) => line.text)
}

function changedLine(line: string): ChangedLine {
  const kind = line.startsWith("-") ? "old" : line.startsWith("+") ? "new" : "kept"
  return { kind, text: line.slice(1) }
}

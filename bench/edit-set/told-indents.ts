import { indent } from "./bend-lines.ts"
import { linesOf, type RealEdit } from "./real-edit.ts"

/** Wider steps are alignment, or text that was put together by a program. */
const maxStep = 8

/**
 * True if the indentation of the new text is what its lines say without it: deeper only after a line that goes on, and
 * by no other step than the file's after an opening bracket, not left there, and back before a closing one; as many
 * brackets are opened as in the old text. Lines that a program put into code from another place are indented as they were
 * there, and close what was opened there, which nobody could tell once it is lost.
 */
export function tellsIndents(edit: RealEdit): boolean {
  const lines = linesOf(edit, "new").filter((line) => line.trim() !== "")
  const steps = new Set(
    [linesOf(edit, "old"), edit.before.split("\n"), edit.after.split("\n")].flatMap(stepsInto),
  )
  return (
    leftOpen(linesOf(edit, "old")) === leftOpen(lines) &&
    stepsInto(lines).every((step) => steps.has(step)) &&
    lines.slice(1).every((line, index) => follows(lines[index] ?? "", line))
  )
}

/** By how much lines are deeper than the opening brackets before them. */
function stepsInto(lines: readonly string[]): number[] {
  return lines.slice(1).flatMap((line, index) => {
    const step = indent(line).length - indent(lines[index] ?? "").length
    return step > 0 && /[([{]\s*$/.test(lines[index] ?? "") ? [step] : []
  })
}

function leftOpen(lines: readonly string[]): number {
  const brackets = lines.join("\n").match(/[()[\]{}]/g) ?? []
  return brackets.filter((bracket) => /[([{]/.test(bracket)).length * 2 - brackets.length
}

function follows(above: string, line: string): boolean {
  const step = indent(line).length - indent(above).length
  const closes = /^\s*[)\]}]/.test(line)
  const opens = /[([{]\s*$/.test(above)
  if (opens) return closes ? step === 0 : step > 0 && step <= maxStep
  if (closes) return step < 0
  const goesOn = /(?:[=>:,?&|+*)-]|\b(?:else|return))\s*$/.test(above) || /^\s*[.?:&|+*<-]/.test(line)
  return step <= (goesOn ? maxStep : 0)
}

import { indent } from "./bend-lines.ts"
import { linesOf, type RealEdit } from "./real-edit.ts"

/** Wider steps are alignment, or text that was put together by a program. */
const maxStep = 8

/**
 * True if the indentation of the new text is what its lines say without it: deeper only after a line that goes on, not
 * left after an opening bracket, and back before a closing one. Lines that a program put into code from another place are
 * indented as they were there, which nobody could tell once it is lost.
 */
export function tellsIndents(edit: RealEdit): boolean {
  const lines = linesOf(edit, "new").filter((line) => line.trim() !== "")
  return lines.slice(1).every((line, index) => follows(lines[index] ?? "", line))
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

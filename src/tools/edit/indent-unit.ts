import { indentOf, type Line } from "./text-lines.ts"

/** Deeper steps are alignment, not levels. */
const maxUnit = 8

/** By how many columns a text goes one level deeper: its commonest step. Undefined where it has none. */
export function indentUnit(lines: readonly Line[]): number | undefined {
  const counts = new Map<number, number>()
  let above: number | undefined
  for (const { text } of lines) {
    if (text.trim() === "") continue
    const width = indentOf(text).length
    const step = width - (above ?? width)
    if (step > 0 && step <= maxUnit) counts.set(step, (counts.get(step) ?? 0) + 1)
    above = width
  }
  const [commonest] = [...counts].sort(([a, times], [b, others]) => others - times || a - b)
  return commonest?.[0]
}

/** The least step between two lines, deeper or back, that is no alignment by one column. Undefined without steps. */
export function leastStep(lines: readonly Line[]): number | undefined {
  const widths = lines.filter(({ text }) => text.trim() !== "").map(({ text }) => indentOf(text).length)
  const steps = widths.slice(1).map((width, index) => Math.abs(width - (widths[index] ?? width)))
  const levels = steps.filter((step) => step > 1 && step <= maxUnit)
  return levels.length > 0 ? Math.min(...levels) : indentUnit(lines)
}

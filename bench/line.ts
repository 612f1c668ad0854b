import { median } from "./statistics.ts"

/** The unit of a value. Times are in milliseconds and sizes in bytes. Percentages range from 0 to 100. */
export type Unit = "time" | "size" | "ratio" | "percent" | "count"

/** The target for Tackle: a maximum relative to another subject in the same run, or an absolute maximum or minimum. */
export type Target =
  | { kind: "ratio"; limit: number; of: string }
  | { kind: "figure"; limit: number; note?: string }
  | { kind: "least"; limit: number }

/** A line of the table. */
export interface Line {
  row: string
  title: string
  unit: Unit
  /** The median for each subject, or the reason why the median is missing. */
  figures: Record<string, number | string>
  target: Target
  /** Value that is compared with the target, and whether it passes. Absent if Tackle has no value. */
  result?: { value: number; ok: boolean }
  /** Components of the value, printed below the table. */
  details?: string[]
}

/** Runs for each subject, or the reason why the subject failed. */
export type Runs<T> = Map<string, T[] | string>

/** Creates a line from the median of each subject's runs and compares it with the target. */
export function line<T>(spec: {
  row: string
  title: string
  unit: Unit
  runs: Runs<T>
  figure: (run: T) => number
  target: Target
}): Line {
  const figures = Object.fromEntries(
    [...spec.runs].map(([name, runs]) => [
      name,
      typeof runs === "string" ? runs : median(runs.map(spec.figure)),
    ]),
  )
  const value = against(spec.target, figures)
  return {
    row: spec.row,
    title: spec.title,
    unit: spec.unit,
    figures,
    target: spec.target,
    result: value === undefined ? undefined : { value, ok: meets(value, spec.target) },
  }
}

function meets(value: number, { kind, limit }: Target): boolean {
  return kind === "least" ? value >= limit : value <= limit
}

function against(target: Target, figures: Record<string, number | string>): number | undefined {
  const own = figures.tackle
  if (typeof own !== "number") return undefined
  if (target.kind !== "ratio") return own
  const other = figures[target.of]
  return typeof other === "number" ? own / other : undefined
}

import { median } from "./statistics.ts"

/** How a figure is written. Times are milliseconds, sizes bytes, ratios and counts bare numbers, percentages out of 100. */
export type Unit = "time" | "size" | "ratio" | "percent" | "count"

/** What Tackle must reach: at most a multiple of another subject's figure in the same run, or at most or least a figure. */
export type Target =
  | { kind: "ratio"; limit: number; of: string }
  | { kind: "figure"; limit: number; note?: string }
  | { kind: "least"; limit: number }

/** One line of the table. */
export interface Line {
  row: string
  title: string
  unit: Unit
  /** By subject: the median, or why there is none. */
  figures: Record<string, number | string>
  target: Target
  /** What is held against the target's limit, and whether it passes. Absent where Tackle has no figure. */
  result?: { value: number; ok: boolean }
  /** What the figure is made up of, printed below the table. */
  details?: string[]
}

/** The runs of each subject, or why it failed. */
export type Runs<T> = Map<string, T[] | string>

/** Makes a line: the median of one figure over the runs of each subject, held against the target. */
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
    ...(value === undefined ? {} : { result: { value, ok: meets(value, spec.target) } }),
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

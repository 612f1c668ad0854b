import { styleText } from "node:util"
import type { Line, Unit } from "./line.ts"

/** Formats the lines as a table with the floor, Tackle, the peers, and Tackle's result against its target. */
export function table(lines: Line[], options: { colour: boolean }): string {
  const peers = peerNames(lines)
  const rows = [
    ["", "floor", "tackle", ...peers, "result", "target", ""],
    ...lines.map((line) => [
      line.title,
      ...["floor", "tackle", ...peers].map((name) => figureText(line.figures[name], line.unit)),
      resultText(line),
      targetText(line),
      verdict(line),
    ]),
  ]
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  const text = rows
    .map((row) =>
      row.map((cell, column) =>
        column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0),
      ),
    )
    .map((row) => row.join("  ").trimEnd())
  const details = lines.flatMap((line) => line.details ?? [])
  const notes = [...references(lines), ...failures(lines), ...details]
  const all = [...text, ...(notes.length > 0 ? ["", ...notes] : [])].join("\n")
  return options.colour ? coloured(all) : all
}

/** Describes the subjects of targets that have no column. */
function references(lines: Line[]): string[] {
  return lines.flatMap(({ title, target, figures, unit }) => {
    const figure = target.kind === "ratio" && target.of !== "floor" ? figures[target.of] : undefined
    return typeof figure === "number" && target.kind === "ratio"
      ? [`${title}: ${target.of} takes ${figureText(figure, unit)}`]
      : []
  })
}

function failures(lines: Line[]): string[] {
  return lines.flatMap(({ title, figures }) =>
    Object.entries(figures).flatMap(([name, figure]) =>
      typeof figure === "string" ? [`${title}: ${name} ${figure}`] : [],
    ),
  )
}

/** Returns the peers in a stable order: all subjects except the floor, Tackle and the subjects of targets. */
export function peerNames(lines: Line[]): string[] {
  const own = new Set(["floor", "tackle", ...referenceNames(lines)])
  return [...new Set(lines.flatMap((line) => Object.keys(line.figures)))]
    .filter((name) => !own.has(name))
    .sort()
}

function referenceNames(lines: Line[]): string[] {
  return lines.flatMap(({ target }) => (target.kind === "ratio" && target.of !== "floor" ? [target.of] : []))
}

/** Formats a value with three significant digits and a unit. */
export function figureText(figure: number | string | undefined, unit: Unit): string {
  if (figure === undefined || Number.isNaN(figure)) return "–"
  if (typeof figure === "string") return "failed"
  if (unit === "ratio") return figure.toFixed(2)
  if (unit === "percent") return `${figure.toFixed(1)} %`
  if (unit === "count") return String(figure)
  if (unit === "time") return figure < 1000 ? `${digits(figure)} ms` : `${digits(figure / 1000)} s`
  return figure < 1e6 ? `${digits(figure / 1000)} KB` : `${digits(figure / 1e6)} MB`
}

/** Formats the value that is compared with the target. */
export function resultText({ target, result, unit }: Line): string {
  if (!result) return "–"
  return target.kind === "ratio"
    ? `${result.value.toFixed(2)} × ${target.of}`
    : figureText(result.value, unit)
}

export function targetText({ target, unit }: Line): string {
  if (target.kind === "least") return `≥ ${figureText(target.limit, unit)}`
  return target.kind === "ratio"
    ? `≤ ${Number(target.limit.toFixed(2))} ×`
    : `≤ ${figureText(target.limit, unit)}`
}

function verdict({ result }: Line): string {
  return result === undefined ? "–" : result.ok ? "ok" : "MISS"
}

function digits(value: number): string {
  return value < 10 ? value.toFixed(2) : value < 100 ? value.toFixed(1) : value.toFixed(0)
}

function coloured(text: string): string {
  return text
    .replaceAll(/ok$/gm, (word) => styleText("green", word))
    .replaceAll(/MISS$/gm, (word) => styleText("red", word))
}

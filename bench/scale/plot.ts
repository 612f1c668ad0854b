import type { Throughput } from "./throughput.ts"

const colours = {
  paper: "#ffffff",
  text: "#1f2328",
  quiet: "#59636e",
  grid: "#d8dee4",
  ok: "#2f6feb",
  miss: "#cf222e",
}

/** Parts of the stacked bars, with their colors. */
const parts = [
  ["workers", "#2f6feb"],
  ["commands", "#8250df"],
  ["servers", "#1a7f37"],
  ["database", "#d4a72c"],
  ["bench", "#afb8c1"],
] as const

/** A column of bars. Bars beyond the target are red. */
interface Column {
  title: string
  value(row: Throughput): number
  /** Upper limit. */
  target?: number
}

const columns: Column[] = [
  { title: "turns per second", value: (row) => row.turnsPerSecond },
  { title: "commits per turn", value: (row) => row.commitsPerTurn, target: 3 },
  { title: "prompt to request, p99 (ms)", value: (row) => row.firstRequestP99, target: 100 },
  { title: "text to client, p99 (ms)", value: (row) => row.lagP99, target: 100 },
]

const layout = { left: 250, column: 170, gap: 30, top: 84, row: 30, bar: 14 }

/** Draws measurements as SVG: a row of bars per measurement, and what used the processor. */
export function plotThroughput(rows: readonly Throughput[], cores: number): string {
  const { left, column, gap, top, row: rowHeight } = layout
  const width = left + (columns.length + 1) * (column + gap)
  const bottom = top + rows.length * rowHeight
  const xOf = (index: number) => left + index * (column + gap)
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${bottom + 44}" width="${width}" height="${bottom + 44}" ` +
      `font-family="system-ui, 'Segoe UI', Helvetica, Arial, sans-serif" font-size="13" fill="${colours.text}">`,
    "<title>Workers and sessions</title>",
    `<rect width="${width}" height="${bottom + 44}" fill="${colours.paper}"/>`,
    text({ x: 20, y: 34, value: `Workers and sessions, ${cores} cores`, size: 19 }),
    ...rows.map((row, index) =>
      text({ x: left - 12, y: top + index * rowHeight + 12, value: nameOf(row), anchor: "end" }),
    ),
    ...columns.flatMap((each, index) => drawColumn(each, rows, xOf(index))),
    ...drawProcessor(rows, xOf(columns.length)),
    ...parts.map(([name, fill], index) => {
      const x = xOf(columns.length) - 260 + index * 85
      return `<rect x="${x}" y="${bottom + 14}" width="11" height="11" fill="${fill}"/>${text({ x: x + 15, y: bottom + 24, value: name === "database" ? "PostgreSQL" : name })}`
    }),
    "</svg>\n",
  ].join("\n")
}

/** Returns the name of a measurement: its workers, its sessions, and what limits them. */
export function nameOf({ workers, concurrency, sessions, rate }: Throughput): string {
  const limit = concurrency === undefined ? "" : ` of ${concurrency}`
  const pace = rate === undefined ? "" : `, ${rate} prompts/s`
  return `${workers} worker${workers === 1 ? "" : "s"}${limit}, ${sessions} sessions${pace}`
}

function drawColumn({ title, value, target }: Column, rows: readonly Throughput[], x: number): string[] {
  const end = Math.max(...rows.map(value), target ?? 0)
  const lengthOf = (amount: number) => (amount / end) * (layout.column - 50)
  const limit = target === undefined ? undefined : x + lengthOf(target)
  return [
    text({ x, y: layout.top - 14, value: title, size: 13 }),
    ...rows.map((row, index) => {
      const [y, amount] = [layout.top + index * layout.row, value(row)]
      const fill = target !== undefined && amount > target ? colours.miss : colours.ok
      return (
        `<rect x="${x}" y="${y}" width="${Math.max(1, lengthOf(amount)).toFixed(1)}" height="${layout.bar}" fill="${fill}"/>` +
        text({ x: x + lengthOf(amount) + 6, y: y + 12, value: amount.toFixed(amount < 10 ? 1 : 0) })
      )
    }),
    limit === undefined
      ? ""
      : `<path d="M${limit.toFixed(1)} ${layout.top - 8}V${layout.top + rows.length * layout.row}" stroke="${colours.text}" stroke-dasharray="3 3"/>`,
  ]
}

function drawProcessor(rows: readonly Throughput[], x: number): string[] {
  const perTurn = (row: Throughput, part: (typeof parts)[number][0]) =>
    (row.processor[part] * 1000) / (row.sessions * row.turns)
  const totalOf = (row: Throughput) => parts.reduce((sum, [part]) => sum + perTurn(row, part), 0)
  const end = Math.max(...rows.map(totalOf))
  const scale = (layout.column - 70) / end
  return [
    text({ x, y: layout.top - 14, value: "CPU ms per turn, share of cores", size: 13 }),
    ...rows.flatMap((row, index) => {
      const y = layout.top + index * layout.row
      let from = x
      const bars = parts.map(([part, fill]) => {
        const length = perTurn(row, part) * scale
        from += length
        return `<rect x="${(from - length).toFixed(1)}" y="${y}" width="${length.toFixed(1)}" height="${layout.bar}" fill="${fill}"/>`
      })
      const value = `${totalOf(row).toFixed(0)}, ${(row.processor.own * 100).toFixed(0)}%`
      return [...bars, text({ x: from + 6, y: y + 12, value })]
    }),
  ]
}

function text({
  x,
  y,
  value,
  size = 13,
  anchor = "start",
}: {
  x: number
  y: number
  value: string
  size?: number
  anchor?: string
}): string {
  const fill = size < 14 && anchor === "start" ? colours.quiet : colours.text
  return `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" font-size="${size}" text-anchor="${anchor}" fill="${fill}">${value}</text>`
}

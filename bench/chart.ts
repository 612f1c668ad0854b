import type { Line } from "./line.ts"
import { figureText, peerNames, resultText, targetText } from "./table.ts"

const width = 1040
const top = 96
const rowHeight = 44
const labelWidth = 350
const plotWidth = 380
/** End of the scale, in multiples of the target. Longer bars are cut and labeled with their value. */
const scaleEnd = 1.6

const colours = {
  paper: "#ffffff",
  text: "#1f2328",
  quiet: "#59636e",
  grid: "#d8dee4",
  floor: "#afb8c1",
  peer: "#d4a72c",
  ok: "#2f6feb",
  miss: "#cf222e",
}

/**
 * Draws the lines with an upper limit as SVG: one bar per line, relative to its target, so that times and sizes share
 * one scale. Thinner bars below it show the floor and the best peer.
 */
export function chart(
  all: Line[],
  machine: { node: string; platform: string; arch: string; cores: number },
): string {
  const lines = all.filter(({ target }) => target.kind !== "least")
  const height = top + lines.length * rowHeight + 44
  const bottom = height - 36
  const about = `${machine.platform} ${machine.arch}, ${machine.cores} cores, Node ${machine.node.replace("v", "")}`
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" ` +
      `font-family="system-ui, 'Segoe UI', Helvetica, Arial, sans-serif" font-size="15" fill="${colours.text}">`,
    "<title>Tackle against its targets</title>",
    `<rect width="${width}" height="${height}" fill="${colours.paper}"/>`,
    label({ x: 24, y: 36, text: "Tackle against its targets", size: 21, weight: 600 }),
    label({
      x: 24,
      y: 60,
      text: `Share of what is allowed; shorter is better. ${about}`,
      fill: colours.quiet,
    }),
    ...legend(lines),
    mark(0, bottom, colours.grid),
    mark(0.5, bottom, colours.grid),
    ...lines.flatMap((line, position) => row(line, top + position * rowHeight, peerNames(lines))),
    mark(1, bottom, colours.text),
    label({ x: at(1), y: bottom + 20, text: "target", anchor: "middle", weight: 600 }),
    label({ x: at(0.5), y: bottom + 20, text: "half of it", anchor: "middle", fill: colours.quiet }),
    "</svg>\n",
  ].join("\n")
}

function row(line: Line, y: number, peers: string[]): string[] {
  const allowed = allowedFigure(line)
  const share = (figure: number | string | undefined) =>
    typeof figure === "number" && allowed !== undefined ? figure / allowed : undefined
  const best = bestPeer(line, peers)
  const result = line.result ? `${resultText(line)} (${targetText(line)})` : "not measured"
  return [
    label({ x: labelWidth - 12, y: y + 18, text: line.title, anchor: "end" }),
    bar(share(line.figures.tackle), y + 4, 16, line.result?.ok === false ? colours.miss : colours.ok),
    bar(share(line.figures.floor), y + 22, 5, colours.floor),
    bar(share(best?.figure), y + 29, 5, colours.peer),
    label({ x: labelWidth + plotWidth + 16, y: y + 17, text: result, weight: 600 }),
    best
      ? label({
          x: labelWidth + plotWidth + 16,
          y: y + 34,
          text: `${best.name} ${figureText(best.figure, line.unit)}`,
          fill: colours.quiet,
          size: 13,
        })
      : "",
  ].filter((part) => part !== "")
}

/** Returns the upper limit for Tackle's value, in the line's unit. */
function allowedFigure({ target, figures }: Line): number | undefined {
  if (target.kind !== "ratio") return target.limit
  const other = figures[target.of]
  return typeof other === "number" ? other * target.limit : undefined
}

function bestPeer({ figures }: Line, peers: string[]): { name: string; figure: number } | undefined {
  return peers
    .flatMap((name) => {
      const figure = figures[name]
      return typeof figure === "number" ? [{ name, figure }] : []
    })
    .sort((a, b) => a.figure - b.figure)[0]
}

function bar(share: number | undefined, y: number, height: number, fill: string): string {
  if (share === undefined) return ""
  const end = Math.min(share, scaleEnd)
  const rect = `<rect x="${at(0)}" y="${y}" width="${Math.max(at(end) - at(0), 1).toFixed(1)}" height="${height}" fill="${fill}"/>`
  if (share <= scaleEnd) return rect
  const [x, middle] = [at(scaleEnd), y + height / 2]
  return `${rect}<path d="M${x} ${y}L${x + height / 2 + 3} ${middle}L${x} ${y + height}z" fill="${fill}"/>`
}

function legend(lines: Line[]): string[] {
  const entries = [
    ["Tackle", colours.ok],
    ["floor: a bare fetch loop", colours.floor],
    ...(peerNames(lines).length > 0 ? [["best peer", colours.peer]] : []),
  ]
  return entries.flatMap(([text = "", fill = ""], position) => {
    const x = labelWidth + position * 110 + (position > 1 ? 100 : 0)
    return [
      `<rect x="${x}" y="74" width="12" height="12" fill="${fill}"/>`,
      label({ x: x + 18, y: 85, text, size: 14 }),
    ]
  })
}

function mark(share: number, bottom: number, colour: string): string {
  return `<line x1="${at(share)}" x2="${at(share)}" y1="${top - 4}" y2="${bottom}" stroke="${colour}" stroke-width="1.5"/>`
}

function at(share: number): number {
  return labelWidth + (share / scaleEnd) * plotWidth
}

function label(spec: {
  x: number
  y: number
  text: string
  anchor?: "middle" | "end"
  fill?: string
  size?: number
  weight?: number
}): string {
  const style = [
    spec.anchor ? ` text-anchor="${spec.anchor}"` : "",
    spec.fill ? ` fill="${spec.fill}"` : "",
    spec.size ? ` font-size="${spec.size}"` : "",
    spec.weight ? ` font-weight="${spec.weight}"` : "",
  ]
  return `<text x="${spec.x}" y="${spec.y}"${style.join("")}>${escaped(spec.text)}</text>`
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")
}

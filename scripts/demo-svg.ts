/**
 * Records demos in a terminal and writes them as animated SVG and as asciicast v2, the format of asciinema: `node
 * scripts/demo-svg.ts [name]`. Requires tmux and a built command. Each demo works on a copy of `examples/shop` with the
 * built-in model, so it needs no API key.
 */
import { execFileSync } from "node:child_process"
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { setTimeout as delay } from "node:timers/promises"

/** Screen of the terminal and the time at which it appeared. Lines contain SGR escape sequences. */
interface Frame {
  lines: string[]
  /** Time in ms since the start. */
  at: number
}

const root = resolve(import.meta.dirname, "..")
const prompt = "replace (1 + discount) with (1 - discount) in src/cart.js, then run npm test"

/** The user of a recorded terminal. */
interface User {
  /** Types a line. */
  type(text: string): Promise<void>
  press(key: string): void
  /** Waits until a text is on the screen. */
  appears(text: string): Promise<void>
}

/** A recording: its file in `docs/`, a description, and what the user does. */
interface Demo {
  file: string
  label: string
  play(user: User): Promise<void>
}

const demos: Demo[] = [
  {
    file: "demo.svg",
    label: "A terminal: Tackle edits a file after a question, runs the tests, and undoes the edit",
    async play({ type, press, appears }) {
      await type(`tackle run --allow 'bash:npm test' '${prompt}'`)
      await appears("Allow this?")
      await delay(2_500)
      press("y")
      await appears("done ·")
      await delay(2_500)
      await type("tackle session undo")
      await appears("restored")
    },
  },
  {
    file: "terminal.svg",
    label:
      "The interactive terminal: Tackle asks for an edit and for a command, and the user undoes the edit",
    async play({ type, press, appears }) {
      await type("tackle --model tackle/offline")
      await appears("tackle/offline")
      await delay(1_000)
      await type(prompt)
      await appears("? edit")
      await delay(3_000)
      press("y")
      await appears("? bash")
      await delay(3_000)
      press("s")
      await appears("I am tackle/offline")
      await delay(3_000)
      await type("/undo")
      await appears("Undid the last turn")
    },
  },
]
const size = { columns: 92, rows: 30 }
/** Time in ms for which the last screen stays. */
const lastMs = 5_000
const sampleMs = 80

const cell = { width: 8.4, height: 18 }
const padding = 14
const colors = ["#484f58", "#ff7b72", "#3fb950", "#d29922", "#58a6ff", "#bc8cff", "#39c5cf", "#c9d1d9"]

const home = mkdtempSync(join(tmpdir(), "tackle-demo-svg-"))
const project = join(home, "shop")
const socket = join(home, "tmux")
try {
  const [only] = process.argv.slice(2)
  for (const demo of demos.filter(({ file }) => only === undefined || file.startsWith(only))) {
    rmSync(project, { recursive: true, force: true })
    cpSync(join(root, "examples/shop"), project, { recursive: true })
    const frames = await record(demo)
    writeFileSync(join(root, "docs", demo.file), render(frames, demo.label))
    writeFileSync(join(root, "docs", demo.file.replace(/svg$/, "cast")), asciicast(frames, demo.label))
    tmux("kill-server")
  }
} finally {
  rmSync(home, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 })
}

async function record(demo: Demo): Promise<Frame[]> {
  const data = join(home, "data")
  mkdirSync(data, { recursive: true })
  const environment = [
    `HOME=${home}`,
    `TACKLE_DATA_DIR=${data}`,
    `PATH=${join(root, "bin")}:${join(root, "node_modules/.bin")}:/usr/bin:/bin`,
    "PS1=$ ",
    "TERM=xterm-256color",
  ]
  const { columns, rows } = size
  const shell = ["env", ...environment, "bash", "--norc", "--noprofile"]
  tmux("new-session", "-d", "-x", `${columns}`, "-y", `${rows}`, "-c", project, ...shell)
  const frames: Frame[] = []
  const start = performance.now()
  let isDone = false
  const sampling = sample()

  await delay(600)
  try {
    await demo.play({ type, appears, press: (key) => void tmux("send-keys", key) })
  } catch (error) {
    tmux("kill-server")
    throw error
  }
  await delay(800)
  isDone = true
  await sampling
  return frames

  async function sample(): Promise<void> {
    while (!isDone) {
      const lines = tmux("capture-pane", "-p", "-e").split("\n").slice(0, rows)
      if (lines.join("\n") !== frames.at(-1)?.lines.join("\n"))
        frames.push({ lines, at: performance.now() - start })
      await delay(sampleMs)
    }
  }

  async function type(text: string): Promise<void> {
    for (const word of text.split(/(?<= )/)) {
      tmux("send-keys", "-l", "--", word)
      await delay(120)
    }
    tmux("send-keys", "Enter")
  }

  async function appears(text: string): Promise<void> {
    const deadline = performance.now() + 30_000
    while (!frames.at(-1)?.lines.some((line) => line.includes(text))) {
      if (performance.now() > deadline)
        throw new Error(`The terminal never showed "${text}":\n${frames.at(-1)?.lines.join("\n")}`)
      await delay(sampleMs)
    }
  }
}

function tmux(...args: string[]): string {
  return execFileSync("tmux", ["-S", socket, "-f", "/dev/null", ...args], { encoding: "utf8" })
}

/** Formats the frames as asciicast v2: a header, and one line of JSON per frame with the rows that changed. */
function asciicast(frames: readonly Frame[], title: string): string {
  const header = { version: 2, width: size.columns, height: size.rows, title }
  const events = frames.map(({ lines, at }, index) => {
    const before = frames[index - 1]?.lines
    const rows = lines.flatMap((line, row) =>
      line === before?.[row] ? [] : [`\u001b[${row + 1};1H${line}\u001b[0m\u001b[K`],
    )
    return [Number((at / 1_000).toFixed(2)), "o", `${index === 0 ? "\u001b[2J" : ""}${rows.join("")}`]
  })
  return [header, ...events].map((line) => `${JSON.stringify(line)}\n`).join("")
}

/**
 * Renders the frames as SVG. Draws each distinct line once and reuses it in all frames. CSS shows one frame at a time.
 */
function render(frames: readonly Frame[], label: string): string {
  const lines = new Map<string, string>()
  const total = (frames.at(-1)?.at ?? 0) + lastMs
  const percent = (ms: number) => Number(((100 * ms) / total).toFixed(2))
  const styles: string[] = []
  const groups = frames.map((frame, index) => {
    const uses = frame.lines.flatMap((line, row) => {
      if (line.trim() === "") return []
      const id = lines.get(line) ?? `l${lines.size}`
      lines.set(line, id)
      return [`<use href="#${id}" y="${row * cell.height}"/>`]
    })
    const [from, to] = [percent(frame.at), percent(frames[index + 1]?.at ?? total)]
    const before = from > 0 ? `0%,${from}%{visibility:hidden}` : ""
    const after = to < 100 ? `${to}%,100%{visibility:hidden}` : ""
    styles.push(`@keyframes f${index}{${before}${from}%{visibility:visible}${after}}`)
    styles.push(`#f${index}{animation-name:f${index}}`)
    // Viewers without animation show the last frame.
    const hidden = index === frames.length - 1 ? "" : ' visibility="hidden"'
    return `<g id="f${index}" class="f"${hidden}>${uses.join("")}</g>`
  })
  const width = Math.ceil(size.columns * cell.width + 2 * padding)
  const height = Math.ceil(size.rows * cell.height + 2 * padding)
  const texts = [...lines].map(([line, id]) => `<g id="${id}">${renderLine(line)}</g>`)
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${label}">`,
    `<style>text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#c9d1d9;white-space:pre}.f{animation-duration:${Math.round(total)}ms;animation-iteration-count:infinite;animation-timing-function:step-end}${styles.join("")}</style>`,
    `<defs>${texts.join("\n")}</defs>`,
    `<rect width="100%" height="100%" rx="8" fill="#0d1117"/>`,
    `<g transform="translate(${padding},${padding + 13})">`,
    ...groups,
    "</g></svg>",
    "",
  ].join("\n")
}

/** Draws each run of one color at its column, so that the viewer's font does not shift it. */
function renderLine(line: string): string {
  let style = ""
  let column = 0
  // Each piece after the first starts with the parameters of an SGR sequence.
  const [first = "", ...rest] = line.split("\u001b[")
  const runs = [first, ...rest.map((piece) => piece.replace(/^[\d;]*m/, ""))]
  return runs
    .map((text, index) => {
      const codes = index === 0 ? undefined : /^[\d;]*/.exec(rest[index - 1] ?? "")?.[0]
      if (codes !== undefined) style = styleOf(codes, style)
      const x = column * cell.width
      column += [...text].length
      if (text === "" || (text.trim() === "" && !style.includes("inverse"))) return ""
      const length = [...text].length * cell.width
      const block = style.includes("inverse")
        ? `<rect x="${x.toFixed(1)}" y="-14" width="${length.toFixed(1)}" height="${cell.height}" fill="#c9d1d9"/>`
        : ""
      return `${block}<text x="${x.toFixed(1)}" textLength="${length.toFixed(1)}" xml:space="preserve"${style && ` style="${style}"`}>${escapeText(text)}</text>`
    })
    .join("")
}

function styleOf(codes: string, before: string): string {
  const parts = new Set(before.split(";").filter(Boolean))
  const setColor = (fill: string) => {
    for (const part of parts) if (part.startsWith("fill:")) parts.delete(part)
    if (fill) parts.add(`fill:${fill}`)
  }
  for (const code of codes.split(";").map(Number)) {
    if (code === 0) parts.clear()
    else if (code === 1) parts.add("font-weight:bold")
    else if (code === 2) parts.add("opacity:.6")
    else if (code === 3) parts.add("font-style:italic")
    else if (code === 4) parts.add("text-decoration:underline")
    else if (code === 7) parts.add("--inverse:1").add("fill:#0d1117")
    else if (code === 23) parts.delete("font-style:italic")
    else if (code === 24) parts.delete("text-decoration:underline")
    else if (code === 27) for (const part of ["--inverse:1", "fill:#0d1117"]) parts.delete(part)
    else if (code === 22) for (const part of ["font-weight:bold", "opacity:.6"]) parts.delete(part)
    else if (code >= 30 && code <= 37) setColor(colors[code - 30] ?? "")
    else if (code >= 90 && code <= 97) setColor(code === 90 ? "#8b949e" : (colors[code - 90] ?? ""))
    else if (code === 39) setColor("")
  }
  return [...parts].join(";")
}

function escapeText(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")
}

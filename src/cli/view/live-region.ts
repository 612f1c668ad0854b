import type { WriteStream } from "node:tty"
import { stripVTControlCharacters } from "node:util"
import { clipped, columns, oneLine } from "../../view/visible.ts"
import { style } from "./style.ts"

/** Time in ms between two frames of the animation. */
const frameMs = 120
/** Minimum time in ms between two updates with new content. */
const redrawMs = 40
const frames = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"]

/** Work in progress. */
export interface Activity {
  text: string
  /** Start in ms on the region's clock. */
  since: number
  /** Time in ms after which the activity is shown. Default: 0. */
  delayMs?: number
  /** Lines to show below the activity, such as the latest output of a command. */
  details?: readonly string[]
}

/** Lines at the bottom of a terminal that change in place. */
export interface LiveRegion {
  /** True if the stream is a terminal that can move its cursor. If false, nothing is drawn. */
  readonly live: boolean
  /** Returns a time in ms that excludes pauses. */
  clock(): number
  /** Sets the unfinished text and the activities. Undefined keeps the current value. */
  set(next: { text?: () => readonly string[]; activities?: readonly Activity[] }): void
  /** Removes the region until it is drawn again. */
  clear(): void
  /** Removes the region until the returned function is called. */
  pause(): () => void
  /** Removes the region and stops drawing. */
  end(): void
}

/**
 * Creates a region at the bottom of a terminal. Anything else that is written to `terminal` appears above the region.
 * Never draws more rows than the terminal has.
 */
export function createLiveRegion(terminal: WriteStream): LiveRegion {
  const live = terminal.isTTY === true && process.env.TERM !== "dumb"
  const write = terminal.write
  let text: () => readonly string[] = () => []
  let activities: readonly Activity[] = []
  let drawn: string[] = []
  let atLineStart = true
  let pausedAt: number | undefined
  let paused = 0
  let animation: NodeJS.Timeout | undefined
  let redraw: NodeJS.Timeout | undefined

  const width = () => Math.max(20, (terminal.columns || 80) - 1)
  const put = (chunk: string) => write.call(terminal, chunk)

  function eraser(): string {
    if (drawn.length === 0) return ""
    // A terminal that became narrower has wrapped the lines.
    const perRow = Math.max(1, terminal.columns || 80)
    const rows = drawn.map((line) => Math.max(1, Math.ceil(columns(stripVTControlCharacters(line)) / perRow)))
    const up = rows.reduce((sum, each) => sum + each, 0) - 1
    drawn = []
    return `\r${up > 0 ? `\u001b[${up}A` : ""}\u001b[J`
  }

  function clear(): void {
    const erase = eraser()
    if (erase !== "") put(erase)
  }

  function draw(): void {
    redraw = undefined
    if (!live || pausedAt !== undefined || !atLineStart) return
    const below = activities.flatMap(activityLines)
    const room = Math.max(1, (terminal.rows || 24) - 1 - below.length)
    const lines = [...text().slice(-room), ...below].slice(-Math.max(1, (terminal.rows || 24) - 1))
    if (lines.join("\n") === drawn.join("\n")) return
    const erase = eraser()
    drawn = lines
    put(erase + lines.join("\n"))
  }

  function activityLines({ text: what, since, delayMs = 0, details = [] }: Activity): string[] {
    const elapsed = clock() - since
    if (elapsed < delayMs) return []
    const frame = frames[Math.floor(elapsed / frameMs) % frames.length] ?? ""
    const seconds = elapsed < 1_000 ? "" : ` ${Math.floor(elapsed / 1000)} s`
    const line = oneLine(`${frame} ${what}`, width() - seconds.length)
    return [
      style.dim(`${line}${seconds}`),
      ...details.map((detail) => style.dim(clipped(`  ${detail}`, width()))),
    ]
  }

  function clock(): number {
    return (pausedAt ?? performance.now()) - paused
  }

  if (live)
    terminal.write = ((chunk: string | Uint8Array, ...rest: []) => {
      if (pausedAt === undefined && chunk.length > 0) {
        clear()
        atLineStart = typeof chunk === "string" ? chunk.endsWith("\n") : chunk.at(-1) === 10
      }
      return write.call(terminal, chunk, ...rest)
    }) as typeof write

  return {
    live,
    clock,
    set(next) {
      text = next.text ?? text
      activities = next.activities ?? activities
      if (!live) return
      redraw ??= setTimeout(draw, redrawMs)
      animation ??= setInterval(draw, frameMs).unref()
    },
    clear,
    pause() {
      clear()
      pausedAt = performance.now()
      return () => {
        paused += performance.now() - (pausedAt ?? performance.now())
        pausedAt = undefined
        atLineStart = true
      }
    },
    end() {
      clearInterval(animation)
      clearTimeout(redraw)
      animation = undefined
      redraw = undefined
      clear()
      if (live) terminal.write = write
    },
  }
}

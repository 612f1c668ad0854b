import type { WriteStream } from "node:tty"
import { style } from "./style.ts"
import { oneLine } from "./visible.ts"

/** What takes less than this shows no progress. */
const patienceMs = 1_000
const frameMs = 120
const frames = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"]

/** One line at the bottom of a terminal that says what is under way, and vanishes. Elsewhere it does nothing. */
export function createStatusLine(terminal: WriteStream) {
  const live = terminal.isTTY === true
  let text: string | undefined
  let since = 0
  let drawn = false
  let paused = false
  let timer: NodeJS.Timeout | undefined

  function clear(): void {
    if (!drawn) return
    terminal.write("\r\u001b[K")
    drawn = false
  }

  function draw(): void {
    if (!live || paused || text === undefined) return
    const elapsed = Date.now() - since
    if (elapsed < patienceMs) return
    const frame = frames[Math.floor(elapsed / frameMs) % frames.length] ?? ""
    const seconds = ` ${Math.floor(elapsed / 1000)} s`
    const line = oneLine(`${frame} ${text}`, (terminal.columns || 80) - seconds.length - 1)
    terminal.write(`\r\u001b[K${style.dim(`${line}${seconds}`)}`)
    drawn = true
  }

  function stop(): void {
    clearInterval(timer)
    timer = undefined
    clear()
  }

  return {
    clear,
    draw,
    /** Undefined: nothing is under way. */
    set(next: string | undefined): void {
      if (next === text) return
      if (text === undefined || next === undefined) since = Date.now()
      text = next
      if (next === undefined) {
        stop()
        return
      }
      if (!live) return
      timer ??= setInterval(draw, frameMs)
      timer.unref()
    },
    pause(): () => void {
      paused = true
      clear()
      return () => {
        paused = false
      }
    },
  }
}

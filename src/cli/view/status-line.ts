import type { WriteStream } from "node:tty"
import { style } from "./style.ts"
import { oneLine } from "./visible.ts"

/** Delay in ms before the current activity is shown. */
const patienceMs = 1_000
const frameMs = 120
const frames = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"]

/** Current activity. The elapsed time restarts when the kind changes. */
export interface Activity {
  kind: "model" | "calls"
  text: string
}

/**
 * Creates a live line that shows the current activity at the bottom of a terminal. Does nothing without a terminal.
 * Draws only if `isFree` returns true, because drawing clears the line of the cursor.
 */
export function createStatusLine(terminal: WriteStream, isFree: () => boolean) {
  const live = terminal.isTTY === true
  let activity: Activity | undefined
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
    if (!live || paused || !activity || !isFree()) return
    const elapsed = performance.now() - since
    if (elapsed < patienceMs) return
    const frame = frames[Math.floor(elapsed / frameMs) % frames.length] ?? ""
    const seconds = ` ${Math.floor(elapsed / 1000)} s`
    const line = oneLine(`${frame} ${activity.text}`, (terminal.columns || 80) - seconds.length - 1)
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
    /** Sets the current activity. Undefined means no activity. */
    set(next: Activity | undefined): void {
      if (next?.kind !== activity?.kind) since = performance.now()
      activity = next
      if (!next) stop()
      else if (live) {
        timer ??= setInterval(draw, frameMs)
        timer.unref()
      }
    },
    /**
     * Pauses the line for a question, and returns a function that resumes it. The pause does not count as elapsed time.
     */
    pause(): () => void {
      const pausedAt = performance.now()
      paused = true
      clear()
      return () => {
        since += performance.now() - pausedAt
        paused = false
      }
    },
  }
}

import { showInvisible } from "../../permission/invisible.ts"
import { folded } from "../../view/visible.ts"
import { asTyped } from "./typed-command.ts"

/**
 * Prints a notice on stderr. Makes hidden characters visible, because file names or other untrusted text could
 * otherwise move the cursor or imitate Tackle's output.
 */
export function warn(message: string): void {
  if (held) {
    held.push(message)
    return
  }
  outliveStderr()
  const text = `tackle: ${showInvisible(asTyped(message), { keepTabs: true }).replaceAll("\n", "\n  ")}`
  process.stderr.write(`${process.stderr.isTTY ? folded(text, process.stderr.columns) : text}\n`)
}

/** Notices that are not printed yet. Undefined unless they are held. */
let held: string[] | undefined

/** Holds notices back while the terminal shows a screen. Returns a function that prints them, and ends this. */
export function holdNotices(): () => void {
  held ??= []
  return () => {
    const messages = held ?? []
    held = undefined
    for (const message of messages) warn(message)
  }
}

/**
 * Ignores further errors on stderr. When the terminal closes, SIGHUP ends the processes that belong to it. A detached
 * process continues, and its session is stored completely.
 */
export function outliveStderr(): void {
  if (process.stderr.listenerCount("error", onLost) === 0) process.stderr.on("error", onLost)
}

function onLost(): void {}

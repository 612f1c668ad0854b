import { showInvisible } from "../../util/invisible.ts"
import { folded } from "../../view/visible.ts"
import { asTyped } from "./typed-command.ts"

/**
 * Prints a notice on stderr. Makes hidden characters visible, because file names or other untrusted text could
 * otherwise move the cursor or imitate Tackle's output.
 */
export function warn(message: string): void {
  outliveStderr()
  const text = `tackle: ${showInvisible(asTyped(message), { keepTabs: true }).replaceAll("\n", "\n  ")}`
  process.stderr.write(`${isFolded && process.stderr.isTTY ? folded(text, process.stderr.columns) : text}\n`)
}

let isFolded = true

/** Sets whether notices are wrapped for the terminal. A screen that shows notices wraps them itself. */
export function foldNotices(value: boolean): void {
  isFolded = value
}

/**
 * Ignores further errors on stderr. When the terminal closes, SIGHUP ends the processes that belong to the terminal. A
 * detached process continues, and its session is saved completely.
 */
export function outliveStderr(): void {
  if (process.stderr.listenerCount("error", onLost) === 0) process.stderr.on("error", onLost)
}

function onLost(): void {}

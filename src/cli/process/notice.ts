import { showInvisible } from "../../permission/invisible.ts"
import { folded } from "../view/visible.ts"

/**
 * Prints a notice on stderr. It may contain file names and text of others: they cannot move the cursor or look like a
 * line of Tackle's.
 */
export function warn(message: string): void {
  outliveStderr()
  const text = `tackle: ${showInvisible(message, { keepTabs: true }).replaceAll("\n", "\n  ")}`
  process.stderr.write(`${process.stderr.isTTY ? folded(text, process.stderr.columns) : text}\n`)
}

/**
 * Ignores errors of stderr from now on. If the terminal closes, SIGHUP ends the processes that should end with it; a
 * process that was started apart from it continues, and its session is stored completely.
 */
export function outliveStderr(): void {
  if (process.stderr.listenerCount("error", onLost) === 0) process.stderr.on("error", onLost)
}

function onLost(): void {}

import { showInvisible } from "../../permission/invisible.ts"
import { folded } from "../view/visible.ts"

/**
 * A notice to the person, on stderr. Names of files and words of others may be in it: they move no cursor, and a line
 * of theirs does not look like one of ours.
 */
export function warn(message: string): void {
  outliveStderr()
  const text = `tackle: ${showInvisible(message, { keepTabs: true }).replaceAll("\n", "\n  ")}`
  process.stderr.write(`${process.stderr.isTTY ? folded(text, process.stderr.columns) : text}\n`)
}

/**
 * From now on nothing that cannot be written on stderr ends what is under way, or becomes another notice. A terminal that
 * is gone says so by SIGHUP to those who shall end with it; who was started apart from it goes on, and is stored whole.
 */
export function outliveStderr(): void {
  if (process.stderr.listenerCount("error", onLost) === 0) process.stderr.on("error", onLost)
}

function onLost(): void {}

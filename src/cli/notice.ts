import { showInvisible } from "../permission/invisible.ts"
import { systemCode } from "../util/errors.ts"
import { folded } from "./view/visible.ts"

/**
 * A notice to the person, on stderr. Names of files and words of others may be in it: they move no cursor, and a line
 * of theirs does not look like one of ours.
 */
export function warn(message: string): void {
  if (process.stderr.listenerCount("error", onLost) === 0) process.stderr.on("error", onLost)
  const text = `tackle: ${showInvisible(message, { keepTabs: true }).replaceAll("\n", "\n  ")}`
  process.stderr.write(`${process.stderr.isTTY ? folded(text, process.stderr.columns) : text}\n`)
}

/**
 * A notice that cannot be written must not become another notice. Where the terminal itself is gone the run ends, in
 * order, like one whose reader went away.
 */
function onLost(error: Error): void {
  if (systemCode(error) === "EIO") process.kill(process.pid, "SIGTERM")
}

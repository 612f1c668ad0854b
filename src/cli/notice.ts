import { showInvisible } from "../permission/invisible.ts"
import { folded } from "./view/visible.ts"

/**
 * A notice to the person, on stderr. Names of files and words of others may be in it: they move no cursor, and a line
 * of theirs does not look like one of ours.
 */
export function warn(message: string): void {
  const text = `tackle: ${showInvisible(message, { keepTabs: true }).replaceAll("\n", "\n  ")}`
  process.stderr.write(`${process.stderr.isTTY ? folded(text, process.stderr.columns) : text}\n`)
}

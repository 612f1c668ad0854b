import { showInvisible } from "../permission/invisible.ts"

/**
 * A notice to the person, on stderr. Names of files and words of others may be in it: they move no cursor, and a line
 * of theirs does not look like one of ours.
 */
export function warn(message: string): void {
  process.stderr.write(`tackle: ${showInvisible(message, { keepTabs: true }).replaceAll("\n", "\n  ")}\n`)
}

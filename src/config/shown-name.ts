import { showInvisible } from "../util/invisible.ts"

/** Maximum length of a displayed name, in characters. */
const maxLength = 120

/** Formats a name from an untrusted file on one line. The result cannot move the cursor or imitate another line. */
export function shownName(name: string): string {
  const shown = wholeName(name)
  return shown.length > maxLength ? `${shown.slice(0, maxLength - 1)}…` : shown
}

/** Formats a name like {@link shownName}, but without a length limit. For names that must be complete, such as paths. */
export function wholeName(name: string): string {
  return showInvisible(name).replaceAll("\n", "<U+000A>")
}

/** Maximum number of displayed names, so that a hostile file cannot flood the output. */
const maxNames = 20

/**
 * Formats names with {@link shownName}, separated by commas. Shows at most 20 names and the number of omitted names.
 */
export function shownNames(names: readonly string[]): string {
  const more = names.length - maxNames
  return [...names.slice(0, maxNames).map(shownName), ...(more > 0 ? [`${more} more`] : [])].join(", ")
}

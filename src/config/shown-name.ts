import { showInvisible } from "../permission/invisible.ts"

/** Longest name that is shown, in characters. */
const maxLength = 120

/** Formats a name from an untrusted file on one line. It cannot move the cursor or look like another line. */
export function shownName(name: string): string {
  const shown = wholeName(name)
  return shown.length > maxLength ? `${shown.slice(0, maxLength - 1)}…` : shown
}

/** Returns the same without a length limit, for example for a path that must be complete. */
export function wholeName(name: string): string {
  return showInvisible(name).replaceAll("\n", "<U+000A>")
}

/** Maximum number of names, so that a hostile file cannot flood the output. */
const maxNames = 20

/** Formats names with {@link shownName}, separated by commas, up to the maximum. */
export function shownNames(names: readonly string[]): string {
  const more = names.length - maxNames
  return [...names.slice(0, maxNames).map(shownName), ...(more > 0 ? [`${more} more`] : [])].join(", ")
}

import { showInvisible } from "../permission/invisible.ts"

/** A name longer than this, in characters, says nothing more to a person. */
const maxLength = 120

/** A name out of a file that nobody vouches for, on one line: nothing in it can move a cursor or pass for another line. */
export function shownName(name: string): string {
  const shown = wholeName(name)
  return shown.length > maxLength ? `${shown.slice(0, maxLength - 1)}…` : shown
}

/** The same at its full length, such as a path that is to be found by it. */
export function wholeName(name: string): string {
  return showInvisible(name).replaceAll("\n", "<U+000A>")
}

/** So many of a file's names are told; a hostile file must not bury what else there is to read. */
const maxNames = 20

/** The names as {@link shownName} has them, with commas between; only the first ones of very many. */
export function shownNames(names: readonly string[]): string {
  const more = names.length - maxNames
  return [...names.slice(0, maxNames).map(shownName), ...(more > 0 ? [`${more} more`] : [])].join(", ")
}

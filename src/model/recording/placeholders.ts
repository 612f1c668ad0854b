/** Values that differ between runs and machines, by placeholder name. */
export type Places = Readonly<Record<"data" | "directory" | "worktree" | "home" | "today", string>>

/** Minimum length of a value that is replaced. Shorter values, such as `/`, are kept. */
const shortest = 3

/** Replaces the values in JSON text with placeholders such as `⟪directory⟫`. */
export function withMarks(json: string, places: Places): string {
  return byLength(places).reduce((text, [name, value]) => text.replaceAll(value, mark(name)), json)
}

/** Replaces the placeholders in JSON text with their values. */
export function withPlaces(json: string, places: Places): string {
  return Object.entries(places).reduce(
    (text, [name, value]) => text.replaceAll(mark(name), quoted(value)),
    json,
  )
}

/** Sorts the values by length, longest first, since one value may be the prefix of another. */
function byLength(places: Places): [string, string][] {
  return Object.entries(places)
    .map(([name, value]): [string, string] => [name, quoted(value)])
    .filter(([, value]) => value.length >= shortest)
    .sort(([, a], [, b]) => b.length - a.length)
}

/** Returns the value as it appears in a JSON string. */
function quoted(value: string): string {
  return JSON.stringify(value).slice(1, -1)
}

function mark(name: string): string {
  return `⟪${name}⟫`
}

/** What is another at each run and in each place, by the name that stands for it in a recording. */
export type Places = Readonly<Record<"data" | "directory" | "worktree" | "home" | "today", string>>

/** Shorter values, such as `/`, stand for much else too. */
const shortest = 3

/** The JSON text with marks in the place of what is another elsewhere, such as `⟪directory⟫`. */
export function withMarks(json: string, places: Places): string {
  return byLength(places).reduce((text, [name, value]) => text.replaceAll(value, mark(name)), json)
}

/** The JSON text with what is so here in the place of the marks. */
export function withPlaces(json: string, places: Places): string {
  return Object.entries(places).reduce(
    (text, [name, value]) => text.replaceAll(mark(name), quoted(value)),
    json,
  )
}

/** The longest first: one may be the beginning of another. */
function byLength(places: Places): [string, string][] {
  return Object.entries(places)
    .map(([name, value]): [string, string] => [name, quoted(value)])
    .filter(([, value]) => value.length >= shortest)
    .sort(([, a], [, b]) => b.length - a.length)
}

/** As it stands within a text in JSON. */
function quoted(value: string): string {
  return JSON.stringify(value).slice(1, -1)
}

function mark(name: string): string {
  return `⟪${name}⟫`
}

/**
 * Maximum length in characters. Longer texts count as equal or completely different, because a detailed comparison
 * takes too long.
 */
const maxLength = 1_000

/**
 * Returns the minimum number of characters to insert, delete or replace to turn `a` into `b`. Takes time proportional
 * to the product of the lengths. Returns the longer length for different texts over 1,000 characters.
 */
export function editDistance(a: string, b: string): number {
  if (a === b) return 0
  if (Math.max(a.length, b.length) > maxLength) return Math.max(a.length, b.length)
  let above = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let row = 1; row <= a.length; row++) {
    const current = [row]
    for (let column = 1; column <= b.length; column++) {
      const [corner = 0, top = 0, left = 0] = [above[column - 1], above[column], current[column - 1]]
      const replaced = corner + (a[row - 1] === b[column - 1] ? 0 : 1)
      current.push(Math.min(replaced, top + 1, left + 1))
    }
    above = current
  }
  return above[b.length] ?? 0
}

/**
 * Maximum length in characters. Longer names are not compared: they are not typing errors, and a model can send a name
 * of any length.
 */
const maxNameLength = 200

/** Returns the names within `limit` edits of `name`, nearest first. Ignores case. */
export function nearNames(name: string, names: readonly string[], limit: number): string[] {
  if (name.length > maxNameLength) return []
  return names
    .filter((candidate) => Math.abs(candidate.length - name.length) <= limit)
    .map((candidate) => ({ candidate, edits: editDistance(name.toLowerCase(), candidate.toLowerCase()) }))
    .filter(({ edits }) => edits <= limit)
    .sort((a, b) => a.edits - b.edits)
    .map(({ candidate }) => candidate)
}

/**
 * Returns `Did you mean a or b?` with up to three names that differ from `name` in at most two characters or a third of
 * its characters, whichever is more, or undefined if no name is near enough.
 */
export function didYouMean(name: string, names: readonly string[]): string | undefined {
  const near = nearNames(name, names, Math.max(2, Math.floor(name.length / 3))).slice(0, 3)
  return near.length > 0 ? `Did you mean ${near.join(" or ")}?` : undefined
}

/** A longer name is no slip of another one, and comparing takes the product of the lengths. In characters. */
const maxLength = 200

/**
 * The names within `limit` edits of `name` (letters added, dropped or replaced; case ignored), nearest first. None for
 * names of more than 200 characters, whoever made them up.
 */
export function nearNames(name: string, names: readonly string[], limit: number): string[] {
  if (name.length > maxLength) return []
  return names
    .filter((candidate) => Math.abs(candidate.length - name.length) <= limit)
    .map((candidate) => ({ candidate, edits: editDistance(name.toLowerCase(), candidate.toLowerCase()) }))
    .filter(({ edits }) => edits <= limit)
    .sort((a, b) => a.edits - b.edits)
    .map(({ candidate }) => candidate)
}

/** How many single letters must be added, dropped or replaced to turn `a` into `b`. */
export function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = at(row, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(at(row, j) + 1, at(next, j - 1) + 1, replaced))
    }
    row = next
  }
  return at(row, b.length)
}

function at(row: readonly number[], index: number): number {
  return row[index] ?? Number.POSITIVE_INFINITY
}

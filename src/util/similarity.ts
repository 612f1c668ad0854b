/**
 * Maximum length in characters. Longer texts count as equal or completely different, because a detailed comparison
 * takes too long.
 */
const maxLength = 1_000
/** Minimum share of a line that must be unchanged for the lines to count as similar. */
const changeFloor = 0.5

/**
 * Returns the minimum number of characters to insert, delete or replace. Takes time proportional to the product of the
 * lengths. Returns the longer length for different texts over 1,000 characters.
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
 * Returns `Did you mean a or b?` with up to three names that differ from `name` in at most a third of its characters,
 * or two of a short name. Returns undefined if no name is near enough.
 */
export function didYouMean(name: string, names: readonly string[]): string | undefined {
  const near = nearNames(name, names, Math.max(2, Math.floor(name.length / 3))).slice(0, 3)
  return near.length > 0 ? `Did you mean ${near.join(" or ")}?` : undefined
}

/** Compares two texts. The score ranges from 0 to 1 and equals `1 - distance / length`. */
export function similarity(a: string, b: string): { distance: number; length: number; score: number } {
  const length = Math.max(a.length, b.length)
  const distance = editDistance(a, b)
  return { distance, length, score: length === 0 ? 1 : 1 - distance / length }
}

/** Returns true if one line may be an edited version of the other, because at least half of it is the same. */
export function isSimilar(a: string, b: string): boolean {
  return similarity(a, b).score >= changeFloor
}

/**
 * Returns a function that scores another text from 0 to 1 by shared pairs of characters. Fast enough to score many
 * texts.
 */
export function pairSimilarity(text: string): (other: string) => number {
  const own = pairs(text)
  const total = Math.max(text.length - 1, 0)
  return (other) => {
    if (other === text) return 1
    const left = new Map(own)
    let shared = 0
    for (let index = 0; index + 1 < other.length; index++) {
      const pair = other.slice(index, index + 2)
      const count = left.get(pair) ?? 0
      if (count === 0) continue
      left.set(pair, count - 1)
      shared += 1
    }
    return (2 * shared) / Math.max(total + other.length - 1, 1)
  }
}

function pairs(text: string): Map<string, number> {
  const counts = new Map<string, number>()
  for (let index = 0; index + 1 < text.length; index++) {
    const pair = text.slice(index, index + 2)
    counts.set(pair, (counts.get(pair) ?? 0) + 1)
  }
  return counts
}

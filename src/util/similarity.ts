/** Longer lines are only ever equal or not: comparing them in detail would take too long. */
const maxLength = 1_000
/** How much of a line an edit leaves as it was. */
const changeFloor = 0.5

/** The least number of single characters to insert, delete or replace. Takes time with the product of the lengths. */
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

/** How alike two texts are, from 0 to 1, and by which numbers: so many characters of so many are others. */
export function likeness(a: string, b: string): { distance: number; length: number; score: number } {
  const length = Math.max(a.length, b.length)
  const distance = editDistance(a, b)
  return { distance, length, score: length === 0 ? 1 : 1 - distance / length }
}

/** True if a line may have become the other: half of it is the same. */
export function areAlike(a: string, b: string): boolean {
  return likeness(a, b).score >= changeFloor
}

/** Says how much another text shares with this one, by pairs of characters: 0 nothing, 1 all. Cheap for many texts. */
export function resemblance(text: string): (other: string) => number {
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

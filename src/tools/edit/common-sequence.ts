/** Above this product of lengths only the common beginning and end are told apart: time and memory grow with it. */
const maxComparisons = 1_000_000

/** Two texts in pieces, of which only the number counts and which of them are the same. */
export interface Compared {
  old: number
  fresh: number
  same(old: number, fresh: number): boolean
  /** Which of several longest sequences: the one that stands furthest towards the end, not towards the beginning. */
  fromEnd?: boolean
}

/** A piece that both have, as indexes. */
export interface CommonPiece {
  old: number
  fresh: number
}

/** The longest common sequence of pieces, in ascending order. */
export function commonSequence(compared: Compared): CommonPiece[] {
  const { old, fresh, same, fromEnd = false } = compared
  if (fromEnd) {
    const mirrored = (a: number, b: number) => same(old - 1 - a, fresh - 1 - b)
    return commonSequence({ old, fresh, same: mirrored })
      .map((piece) => ({ old: old - 1 - piece.old, fresh: fresh - 1 - piece.fresh }))
      .toReversed()
  }
  const shorter = Math.min(old, fresh)
  let head = 0
  while (head < shorter && same(head, head)) head += 1
  let tail = 0
  while (tail < shorter - head && same(old - 1 - tail, fresh - 1 - tail)) tail += 1
  const kept = Array.from({ length: head }, (_, index) => ({ old: index, fresh: index }))
  const [rows, columns] = [old - head - tail, fresh - head - tail]
  const lengths =
    rows * columns > maxComparisons ? [] : commonLengths(rows, columns, (a, b) => same(head + a, head + b))
  const at = (row: number, column: number) => lengths[row]?.[column] ?? 0
  let [row, column] = [0, 0]
  while (at(row, column) > 0) {
    if (same(head + row, head + column)) kept.push({ old: head + row++, fresh: head + column++ })
    else if (at(row + 1, column) >= at(row, column + 1)) row += 1
    else column += 1
  }
  for (let left = tail; left > 0; left--) kept.push({ old: old - left, fresh: fresh - left })
  return kept
}

/** Pieces `start` to `end`, not included. */
export interface Range {
  start: number
  end: number
}

/** Pieces that took the place of others; either side may be empty. */
export interface Change {
  old: Range
  fresh: Range
}

/** What lies between the pieces of the longest common sequence. */
export function changesBetween(compared: Compared): Change[] {
  const changes: Change[] = []
  let [old, fresh] = [0, 0]
  for (const next of [...commonSequence(compared), { old: compared.old, fresh: compared.fresh }]) {
    if (next.old > old || next.fresh > fresh) {
      changes.push({ old: { start: old, end: next.old }, fresh: { start: fresh, end: next.fresh } })
    }
    old = next.old + 1
    fresh = next.fresh + 1
  }
  return changes
}

/** For every pair of places, how many pieces two texts still have in common from there on. */
function commonLengths(
  rows: number,
  columns: number,
  same: (row: number, column: number) => boolean,
): number[][] {
  const lengths = Array.from({ length: rows + 1 }, () => new Array<number>(columns + 1).fill(0))
  for (let row = rows - 1; row >= 0; row--) {
    const [current, below] = [lengths[row] ?? [], lengths[row + 1] ?? []]
    for (let column = columns - 1; column >= 0; column--) {
      const skip = Math.max(below[column] ?? 0, current[column + 1] ?? 0)
      current[column] = same(row, column) ? (below[column + 1] ?? 0) + 1 : skip
    }
  }
  return lengths
}

import type { Place } from "./errors.ts"

/** Turns offsets of a text into places. A byte order mark takes no column. */
export function placeFinder(text: string, file: string): (offset: number) => Place {
  const starts = [text.startsWith("\uFEFF") ? 1 : 0]
  for (const match of text.matchAll(/\r\n|\n|\r/g)) starts.push(match.index + match[0].length)
  return (offset) => {
    const line = lastAtMost(starts, offset)
    return { file, line: line + 1, column: Math.max(1, offset - (starts[line] ?? 0) + 1) }
  }
}

/** Index of the last of the ascending numbers that is not above `limit`; 0 where there is none. */
function lastAtMost(numbers: readonly number[], limit: number): number {
  let [low, high] = [0, numbers.length - 1]
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if ((numbers[middle] ?? 0) <= limit) low = middle
    else high = middle - 1
  }
  return low
}

/** A text with some of its characters replaced, and the way back to the places of the original. */
export interface FoldedText {
  text: string
  /** The offset in the original; undefined in the middle of a replacement, which has no place there. */
  original(offset: number): number | undefined
}

/** Replaces what the global `pattern` finds. Linear in time; memory grows with the replacements that change length. */
export function foldText(text: string, pattern: RegExp, replace: (found: string) => string): FoldedText {
  const shifts: Shift[] = []
  const pieces: string[] = []
  let end = 0
  let length = 0
  for (const { 0: found, index } of text.matchAll(pattern)) {
    const replacement = replace(found)
    pieces.push(text.slice(end, index), replacement)
    length += index - end
    end = index + found.length
    if (found.length !== replacement.length) {
      shifts.push({ start: length, end: length + replacement.length, original: end })
    }
    length += replacement.length
  }
  pieces.push(text.slice(end))
  return { text: pieces.join(""), original: (offset) => unfold(shifts, offset) }
}

/** Where a replacement of another length lies in the folded text, and where it ends in the original. */
interface Shift {
  start: number
  end: number
  original: number
}

function unfold(shifts: readonly Shift[], offset: number): number | undefined {
  const shift = lastBefore(shifts, offset)
  if (!shift) return offset
  return offset < shift.end ? undefined : shift.original + offset - shift.end
}

/** By bisection: the last shift that starts before the offset. */
function lastBefore(shifts: readonly Shift[], offset: number): Shift | undefined {
  let low = 0
  let high = shifts.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((shifts[middle]?.start ?? 0) < offset) low = middle + 1
    else high = middle
  }
  return shifts[low - 1]
}

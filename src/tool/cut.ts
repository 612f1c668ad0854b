/** Number of lines; a newline at the end starts no further one. */
export function lineCount(text: string): number {
  let count = text.length > 0 && !text.endsWith("\n") ? 1 : 0
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) count += 1
  return count
}

/** How much of a text may stay. Bytes of UTF-8. */
export interface Room {
  lines: number
  bytes: number
}

/**
 * The first whole lines that fit. Where not even the first line fits, as much of it as does, up to the border of a
 * character: a look at a giant line is worth more than none.
 */
export function cutHead(text: string, room: Room): string {
  let end = 0
  let bytes = 0
  for (let lines = 0; lines < room.lines && end < text.length; lines += 1) {
    const newline = text.indexOf("\n", end)
    const next = newline === -1 ? text.length : newline + 1
    // A character has at least one byte: what is longer than the room need not be measured.
    const size = next - end > room.bytes ? Number.POSITIVE_INFINITY : Buffer.byteLength(text.slice(end, next))
    if (bytes + size > room.bytes) break
    bytes += size
    end = next
  }
  return end > 0 || room.lines < 1 ? text.slice(0, end) : firstBytes(text, room.bytes)
}

/** The last whole lines that fit, or the end of the last line where it alone is too long. */
export function cutTail(text: string, room: Room): string {
  let start = text.length
  let bytes = 0
  for (let lines = 0; lines < room.lines && start > 0; lines += 1) {
    // The newline just before `start` ends the line that is looked at.
    const previous = start < 2 ? 0 : text.lastIndexOf("\n", start - 2) + 1
    const size =
      start - previous > room.bytes
        ? Number.POSITIVE_INFINITY
        : Buffer.byteLength(text.slice(previous, start))
    if (bytes + size > room.bytes) break
    bytes += size
    start = previous
  }
  return start < text.length || room.lines < 1 ? text.slice(start) : lastBytes(text, room.bytes)
}

function firstBytes(text: string, bytes: number): string {
  // A character has at least one byte, so that what fits lies in this slice.
  const encoded = Buffer.from(text.slice(0, bytes))
  return encoded.toString("utf8", 0, characterBorder(encoded, Math.min(bytes, encoded.length), -1))
}

function lastBytes(text: string, bytes: number): string {
  const encoded = Buffer.from(text.slice(Math.max(0, text.length - bytes)))
  return encoded.toString("utf8", characterBorder(encoded, Math.max(0, encoded.length - bytes), 1))
}

/** The nearest place from `at` on, in the direction of `step`, that is not inside a character of UTF-8. */
function characterBorder(encoded: Uint8Array, at: number, step: 1 | -1): number {
  let border = at
  while (border > 0 && border < encoded.length && ((encoded[border] ?? 0) & 0xc0) === 0x80) border += step
  return border
}

/** In each byte of a word the lowest bit, the highest, and all but the highest. */
const lowBits = 0x01010101
const highBits = 0x80808080
const otherBits = 0x7f7f7f7f
const newlines = 0x0a0a0a0a

/** So many words go by before a lane of eight bits could overflow. */
const lanesHold = 255

/**
 * Counts newlines, four bytes at a time: 0.2 s for 500 MB, whatever the lines. A loop over bytes takes 0.7 s, `indexOf`
 * from one to the next 0.2 s for lines of 80 bytes and 5 s for lines of two. What has none at all is left to `indexOf`.
 */
export function countNewlines(bytes: Buffer): number {
  if (!bytes.includes(0x0a)) return 0
  // Words have to lie at places that four divides.
  const lead = -bytes.byteOffset & 3
  const words = (bytes.length - lead) >> 2
  if (words <= 0) return countOneByOne(bytes, 0, bytes.length)
  const counted = countInWords(new Int32Array(bytes.buffer, bytes.byteOffset + lead, words))
  return countOneByOne(bytes, 0, lead) + counted + countOneByOne(bytes, lead + words * 4, bytes.length)
}

/** Works in lanes: each byte of `lanes` counts those bytes of the words in its place that are a newline. */
function countInWords(words: Int32Array): number {
  let count = 0
  for (let index = 0; index < words.length; ) {
    const end = Math.min(index + lanesHold, words.length)
    let lanes = 0
    for (; index < end; index += 1) {
      const difference = (words[index] ?? 0) ^ newlines
      // The highest bit of each byte: set unless the byte is a newline. The sum never carries into the next byte.
      const others = (((difference & otherBits) + otherBits) | difference) & highBits
      lanes = (lanes + ((~others >>> 7) & lowBits)) | 0
    }
    count += (lanes & 255) + ((lanes >>> 8) & 255) + ((lanes >>> 16) & 255) + (lanes >>> 24)
  }
  return count
}

function countOneByOne(bytes: Buffer, start: number, end: number): number {
  let count = 0
  for (let index = start; index < end; index += 1) if (bytes[index] === 0x0a) count += 1
  return count
}

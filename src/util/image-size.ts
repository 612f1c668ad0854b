/** Width and height of an image in pixels. */
export interface ImageSize {
  width: number
  height: number
}

/**
 * Number of leading bytes to pass to {@link imageSize}. It is large because cameras store previews before the size in a
 * JPEG.
 */
export const imageHeadBytes = 256 * 1024

/**
 * Reads the size from the start of a PNG, JPEG, GIF or WebP image. Returns undefined for other formats, or if `head`
 * does not contain the size.
 */
export function imageSize(head: Buffer): ImageSize | undefined {
  const starts = (text: string, at = 0) => head.toString("latin1", at, at + text.length) === text
  try {
    if (starts("\x89PNG")) return { width: head.readUInt32BE(16), height: head.readUInt32BE(20) }
    if (starts("GIF8")) return { width: head.readUInt16LE(6), height: head.readUInt16LE(8) }
    if (starts("\xff\xd8")) return jpegSize(head)
    if (starts("RIFF") && starts("WEBP", 8)) return webpSize(head)
  } catch (error) {
    // The data ends before the size.
    if (!(error instanceof RangeError)) throw error
  }
  return undefined
}

/** Skips segments until the start of a frame, which contains the size. */
function jpegSize(head: Buffer): ImageSize | undefined {
  for (let at = 2; ; ) {
    const marker = head.readUInt16BE(at)
    if (marker >> 8 !== 0xff) return undefined
    if (isFrame(marker & 0xff)) return { height: head.readUInt16BE(at + 5), width: head.readUInt16BE(at + 7) }
    at += 2 + head.readUInt16BE(at + 2)
  }
}

/** Returns true for the markers SOF0 to SOF15, except the three in this range that have another meaning. */
function isFrame(marker: number): boolean {
  return marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker)
}

function webpSize(head: Buffer): ImageSize | undefined {
  switch (head.toString("latin1", 12, 16)) {
    case "VP8X":
      return { width: head.readUIntLE(24, 3) + 1, height: head.readUIntLE(27, 3) + 1 }
    case "VP8 ":
      return { width: head.readUInt16LE(26) & 0x3fff, height: head.readUInt16LE(28) & 0x3fff }
    case "VP8L": {
      const bits = head.readUInt32LE(21)
      return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 }
    }
    default:
      return undefined
  }
}

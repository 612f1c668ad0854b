import { TackleError } from "../util/errors.ts"

/** Encoding of a text file. If `bom` is true, the file starts with a byte order mark, which is not part of the text. */
export interface TextFormat {
  encoding: "utf-8" | "utf-16le" | "utf-16be"
  bom: boolean
}

/** The format of new files. */
export const plainText: TextFormat = { encoding: "utf-8", bom: false }

/**
 * Result of {@link decodeText}. `binary`: the content contains NUL characters. `unknown`: the content is neither valid
 * UTF-8 nor valid UTF-16 with a byte order mark.
 */
export type DecodedText =
  | { kind: "text"; text: string; format: TextFormat }
  | { kind: "binary" }
  | { kind: "unknown" }

const marks: readonly { format: TextFormat; bytes: Uint8Array }[] = [
  { format: { encoding: "utf-8", bom: true }, bytes: Uint8Array.of(0xef, 0xbb, 0xbf) },
  { format: { encoding: "utf-16le", bom: true }, bytes: Uint8Array.of(0xff, 0xfe) },
  { format: { encoding: "utf-16be", bom: true }, bytes: Uint8Array.of(0xfe, 0xff) },
]

/** Decodes the bytes of a file. Returns `text` only if {@link encodeText} reproduces the same bytes. */
export function decodeText(bytes: Uint8Array): DecodedText {
  const mark = marks.find((entry) => startsWith(bytes, entry.bytes))
  const format = mark?.format ?? plainText
  const text = decode(bytes.subarray(mark?.bytes.length ?? 0), format)
  if (text === undefined) return { kind: bytes.includes(0) ? "binary" : "unknown" }
  if (text.includes("\0")) return { kind: "binary" }
  if (Buffer.compare(encodeText(text, format), bytes) !== 0) return { kind: "unknown" }
  return { kind: "text", text, format }
}

/** Encodes the text. Throws `TackleError` (`text.malformed`) for a lone surrogate, which no encoding can represent. */
export function encodeText(text: string, format: TextFormat): Uint8Array {
  if (!text.isWellFormed()) {
    throw new TackleError(
      "The new text contains half a character (a lone UTF-16 surrogate) and was not written. Use whole characters.",
      { code: "text.malformed", recoverable: true },
    )
  }
  const mark = marks.find((entry) => entry.format.encoding === format.encoding)
  const body = encode(text, format)
  return format.bom && mark ? Buffer.concat([mark.bytes, body]) : body
}

function startsWith(bytes: Uint8Array, mark: Uint8Array): boolean {
  return mark.every((byte, index) => bytes[index] === byte)
}

function decode(bytes: Uint8Array, format: TextFormat): string | undefined {
  try {
    return new TextDecoder(format.encoding, { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch (error) {
    // With `fatal`, `TextDecoder` throws a TypeError for invalid bytes.
    if (error instanceof TypeError) return undefined
    throw error
  }
}

function encode(text: string, format: TextFormat): Buffer {
  if (format.encoding === "utf-8") return Buffer.from(text, "utf8")
  const bytes = Buffer.from(text, "utf16le")
  return format.encoding === "utf-16be" ? bytes.swap16() : bytes
}

import { basename, extname } from "node:path"

/** Kind of a file, determined from its first bytes and its name. */
export type FileKind =
  | { kind: "text"; encoding: TextEncoding }
  | { kind: "media"; mime: string }
  | { kind: "binary" }

/** Labels for `TextDecoder`. UTF-16 is recognized only by its byte order mark. */
export type TextEncoding = "utf-8" | "utf-16le" | "utf-16be"

/** Number of leading bytes that {@link fileKind} examines. */
export const sampleBytes = 4096

/** Maximum share of control characters in text. A sample with a larger share is binary. */
const maxControlShare = 0.3

/** Signatures of the formats that models accept as attachments. SVG is not included because it is text. */
const media: readonly { mime: string; matches: (sample: Buffer) => boolean }[] = [
  { mime: "image/png", matches: (sample) => starts(sample, "\x89PNG\r\n\x1a\n") },
  { mime: "image/jpeg", matches: (sample) => starts(sample, "\xff\xd8\xff") },
  { mime: "image/gif", matches: (sample) => starts(sample, "GIF87a") || starts(sample, "GIF89a") },
  { mime: "image/webp", matches: (sample) => starts(sample, "RIFF") && starts(sample.subarray(8), "WEBP") },
  { mime: "application/pdf", matches: (sample) => starts(sample, "%PDF-") },
]

/** Extensions of formats that are binary even if their first bytes look like text. */
const binaryExtensions = new Set(
  (
    ".7z .a .avi .avif .bmp .br .bz2 .class .dll .dmg .doc .docx .dylib .ear .eot .exe .flac .gz .heic .ico .iso .jar " +
    ".lz4 .mkv .mov .mp3 .mp4 .o .odp .ods .odt .ogg .otf .ppt .pptx .pyc .rar .so .sqlite .tar .tgz .tif .tiff .ttf " +
    ".war .wasm .wav .webm .woff .woff2 .xls .xlsx .xz .zip .zst"
  ).split(" "),
)

/**
 * Returns the kind of a file. `sample` contains its first {@link sampleBytes} bytes, or all bytes of a shorter file.
 */
export function fileKind(name: string, sample: Buffer): FileKind {
  const known = media.find(({ matches }) => matches(sample))
  if (known) return { kind: "media", mime: known.mime }
  if (starts(sample, "\xff\xfe\0\0")) return { kind: "binary" } // UTF-32, which TextDecoder does not support
  if (starts(sample, "\xff\xfe")) return { kind: "text", encoding: "utf-16le" }
  if (starts(sample, "\xfe\xff")) return { kind: "text", encoding: "utf-16be" }
  if (binaryExtensions.has(extname(name).toLowerCase())) return { kind: "binary" }
  if (sample.includes(0) || controlShare(sample) > maxControlShare) return { kind: "binary" }
  return { kind: "text", encoding: "utf-8" }
}

function starts(sample: Buffer, bytes: string): boolean {
  return sample.subarray(0, bytes.length).equals(Buffer.from(bytes, "latin1"))
}

/**
 * Returns the share of control characters. Does not count control characters that are used in text: backspace, tab,
 * line feed, form feed, carriage return and escape.
 */
function controlShare(sample: Buffer): number {
  let count = 0
  for (const byte of sample) {
    const ofText = (byte >= 8 && byte <= 10) || byte === 12 || byte === 13 || byte === 27
    if ((byte < 32 && !ofText) || byte === 127) count += 1
  }
  return sample.length === 0 ? 0 : count / sample.length
}

/** Matches templates for credential files. Templates contain no credentials, because they are meant to be shared. */
const template = /\.(example|sample|template)$/i

/**
 * Returns true for files that usually contain credentials: `.env`, `.env.local`, `.envrc`, `staging.env`. A directory
 * search must not show lines from these files, because reading them usually requires permission from the user.
 */
export function isSecretFile(path: string): boolean {
  const name = basename(path)
  return (/^\.env/i.test(name) || /\.env$/i.test(name)) && !template.test(name)
}

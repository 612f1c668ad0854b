import type { LanguageModelV4FilePart, LanguageModelV4TextPart } from "@ai-sdk/provider"
import { type ImageSize, imageHeadBytes, imageSize } from "../util/image-size.ts"
import type { ModelInfo, ProviderFamily } from "./model.ts"

/** What a family's servers take of files. One too much and they refuse the request, and each later one with it. */
interface FileLimits {
  /** Media types. */
  types: RegExp
  /** Of one picture, in characters of base64: that is what they count. */
  maxImageLength?: number
  /** Of one picture, on each side. */
  maxImagePixels?: number
}

const mebibyte = 1024 * 1024

/** By what the providers say of themselves; of compatible servers nothing is known. */
const limits: Record<ProviderFamily, FileLimits> = {
  "openai-compatible": { types: /^image\// },
  openai: { types: /^(image\/(png|jpeg|gif|webp)|application\/pdf)$/, maxImageLength: 50 * mebibyte },
  anthropic: {
    types: /^(image\/(png|jpeg|gif|webp)|application\/pdf)$/,
    maxImageLength: 5 * mebibyte,
    maxImagePixels: 8000,
  },
  google: {
    types: /^(image\/(png|jpeg|webp|heic|heif)|audio\/.*|video\/.*|application\/pdf)$/,
    maxImageLength: 20 * mebibyte,
  },
  other: { types: /^image\// },
}

/** A file as parts and attachments carry it: `url` is a data URL or a path. */
interface SourceFile {
  mime: string
  url: string
  filename?: string | undefined
}

/**
 * What the model gets of a file: the file itself, its text, or a note that it was not sent. Undefined for a path to
 * text or a directory: its content stands beside it as text.
 */
export function convertFile(
  file: SourceFile,
  model: ModelInfo,
): LanguageModelV4FilePart | LanguageModelV4TextPart | undefined {
  const data = readDataUrl(file.url)
  const isText = file.mime.startsWith("text/") || file.mime === "application/x-directory"
  if (isText) {
    return data === undefined
      ? undefined
      : { type: "text", text: Buffer.from(data, "base64").toString("utf8") }
  }
  const limit = limits[model.family ?? "openai-compatible"]
  if (model.attachment !== true) return note(file, data, "this model takes no files, only text")
  if (!limit.types.test(file.mime)) return note(file, data, "this model takes no files of that kind")
  if (data === undefined) return note(file, data, "its content is not at hand")
  const problem = file.mime.startsWith("image/") ? imageProblem(data, limit) : undefined
  if (problem !== undefined) return note(file, data, `${problem}. Make a smaller copy and read that`)
  return {
    type: "file",
    mediaType: file.mime,
    data: { type: "data", data },
    ...(file.filename !== undefined && { filename: file.filename }),
  }
}

/** Why the picture cannot be sent, or nothing. Nothing here can make it smaller. */
function imageProblem(data: string, { maxImageLength, maxImagePixels }: FileLimits): string | undefined {
  if (maxImageLength !== undefined && data.length > maxImageLength)
    return `the provider takes pictures of at most ${megabytes(maxImageLength)}`
  if (maxImagePixels === undefined) return undefined
  const size = sizeOf(data)
  return size && Math.max(size.width, size.height) > maxImagePixels
    ? `the provider takes pictures of at most ${maxImagePixels} pixels on a side`
    : undefined
}

/** The bytes that so many characters of base64 stand for. */
function megabytes(characters: number): string {
  return `${((characters * 3) / 4 / 1_000_000).toFixed(1)} MB`
}

function sizeOf(data: string): ImageSize | undefined {
  return imageSize(Buffer.from(data.slice(0, Math.ceil(imageHeadBytes / 3) * 4), "base64"))
}

/** What stands for the file: what it is, and why it is not there. */
function note(file: SourceFile, data: string | undefined, reason: string): LanguageModelV4TextPart {
  const path = file.url.startsWith("data:") ? undefined : file.url
  const size = data !== undefined && file.mime.startsWith("image/") ? sizeOf(data) : undefined
  const pixels = size && `${size.width} × ${size.height} pixels`
  const bytes = data && megabytes(data.length)
  const name = [file.mime, file.filename ?? path, pixels, bytes].filter(Boolean).join(", ")
  return { type: "text", text: `[A file (${name}) was not sent: ${reason}.]` }
}

/** The content of a data URL in base64; undefined for any other text. */
function readDataUrl(url: string): string | undefined {
  const comma = url.indexOf(",")
  if (!url.startsWith("data:") || comma === -1) return undefined
  const content = url.slice(comma + 1)
  if (url.slice(0, comma).endsWith(";base64")) return content
  return Buffer.from(decodeURIComponent(content)).toString("base64")
}

import type { LanguageModelV4FilePart, LanguageModelV4TextPart } from "@ai-sdk/provider"
import { type ImageSize, imageHeadBytes, imageSize } from "../util/image-size.ts"
import type { ModelInfo, ProviderFamily } from "./model.ts"

/**
 * Files that a provider family's servers accept. A server rejects every request whose history contains any other file.
 */
interface FileLimits {
  /** Accepted media types. */
  types: RegExp
  /** Maximum size of an image in base64 characters. */
  maxImageLength?: number
  /** Maximum width and height of an image in pixels. */
  maxImagePixels?: number
}

const mebibyte = 1024 * 1024

/** Limits from the providers' documentation. The limits of compatible servers are unknown. */
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

/** A file from a message part or an attachment. `url` is a data URL or a path. */
interface SourceFile {
  mime: string
  url: string
  filename?: string | undefined
}

/**
 * Converts a file to a file part, a text part with the file's content, or a note that says why the file was not sent.
 * Returns undefined for the path of a text file or directory, because its content is already in the prompt.
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
  if (model.attachment !== true) return note(file, data, "this model accepts only text")
  if (!limit.types.test(file.mime)) return note(file, data, "this model does not accept files of this type")
  if (data === undefined) return note(file, data, "its content is not available")
  const problem = file.mime.startsWith("image/") ? imageProblem(data, limit) : undefined
  if (problem !== undefined)
    return note(file, data, `${problem}. Create a smaller copy of the file and read that copy`)
  return {
    type: "file",
    mediaType: file.mime,
    data: { type: "data", data },
    filename: file.filename,
  }
}

/** Returns the reason why an image cannot be sent, or undefined if it can be sent. */
function imageProblem(data: string, { maxImageLength, maxImagePixels }: FileLimits): string | undefined {
  if (maxImageLength !== undefined && data.length > maxImageLength)
    return `the provider accepts images of at most ${fileSize(maxImageLength)}`
  if (maxImagePixels === undefined) return undefined
  const size = sizeOf(data)
  return size && Math.max(size.width, size.height) > maxImagePixels
    ? `the provider accepts images of at most ${maxImagePixels} pixels per side`
    : undefined
}

/** Formats the decoded size of base64 data. */
function fileSize(characters: number): string {
  const kilobytes = (characters * 3) / 4 / 1_000
  return kilobytes < 1_000 ? `${Math.ceil(kilobytes)} KB` : `${(kilobytes / 1_000).toFixed(1)} MB`
}

function sizeOf(data: string): ImageSize | undefined {
  return imageSize(Buffer.from(data.slice(0, Math.ceil(imageHeadBytes / 3) * 4), "base64"))
}

/** Returns a note that describes the file and says why it was not sent. */
function note(file: SourceFile, data: string | undefined, reason: string): LanguageModelV4TextPart {
  const path = file.url.startsWith("data:") ? undefined : file.url
  const size = data !== undefined && file.mime.startsWith("image/") ? sizeOf(data) : undefined
  const pixels = size && `${size.width} × ${size.height} pixels`
  const bytes = data && fileSize(data.length)
  const name = [file.mime, file.filename ?? path, pixels, bytes].filter(Boolean).join(", ")
  return { type: "text", text: `[A file (${name}) was not sent: ${reason}.]` }
}

/** Returns the content of a data URL in base64, or undefined for any other text. */
export function readDataUrl(url: string): string | undefined {
  const comma = url.indexOf(",")
  if (!url.startsWith("data:") || comma === -1) return undefined
  const content = url.slice(comma + 1)
  if (url.slice(0, comma).endsWith(";base64")) return content
  return Buffer.from(decodePercent(content)).toString("base64")
}

/** Decodes percent-encoded text. Returns the text unchanged if it is not validly encoded. */
function decodePercent(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

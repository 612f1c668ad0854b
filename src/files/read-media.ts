import { imageHeadBytes, imageSize } from "../util/image-size.ts"
import { UnreadableContentError } from "./file-errors.ts"
import { type FileStamp, stampBytes } from "./file-tracker.ts"
import { type OpenFile, readChunks } from "./open-file.ts"
import { showName } from "./show-name.ts"

/** Maximum size in bytes. The largest providers limit a request to about 20 MB. */
const maxMediaBytes = 20 * 1024 * 1024

/**
 * An attachment. `bytes` and `stamp` describe the file. `mime`, `url` and `scaled` describe the data that is sent.
 */
export interface Media extends Pick<Picture, "mime" | "scaled"> {
  url: string
  bytes: number
  stamp: FileStamp
}

/**
 * Reads a whole image or document as a data URL. If `sharp` is installed, scales down images that providers would
 * reject. Throws {@link UnreadableContentError} for a file of more than 20 MiB, even if the file grows while it is
 * read, and the signal's reason if the signal aborts.
 */
export async function readMedia(
  handle: OpenFile,
  options: { path: string; mime: string; signal: AbortSignal },
): Promise<Media> {
  const { size, mtimeMs } = handle.stat()
  if (size > maxMediaBytes) throw tooLarge(options.path, size)
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of readChunks(handle, options.signal)) {
    bytes += chunk.length
    if (bytes > maxMediaBytes) throw tooLarge(options.path, bytes)
    chunks.push(Buffer.from(chunk))
  }
  const file = Buffer.concat(chunks)
  const { content, mime, scaled } = await fitPicture({ content: file, mime: options.mime })
  const url = `data:${mime};base64,${content.toString("base64")}`
  return { url, mime, bytes, scaled, stamp: stampBytes(file, mtimeMs) }
}

function tooLarge(path: string, bytes: number): UnreadableContentError {
  return new UnreadableContentError(
    `${showName(path)} is ${bytes} bytes. Only images and PDFs of up to ${maxMediaBytes} bytes can be attached. ` +
      "Make a smaller copy with a command, or extract the part you need.",
  )
}

/** The strictest image limits among the large providers: 5 MiB of base64, and 8000 pixels per side. */
const limits = { bytes: (5 * 1024 * 1024 * 3) / 4, pixels: 8_000 }

/** Maximum length of the longer side of a scaled image, in pixels. Models do not use a higher resolution. */
const scaledPixels = 2_000

/** An attached image. */
export interface Picture {
  content: Buffer
  mime: string
  /** Size before and after scaling, in pixels. Absent if the content is unchanged. */
  scaled?: { from: string; to: string }
}

/** The part of the `sharp` API that is used. */
type Sharp = typeof import("sharp").default

/**
 * Scales down an image that providers would reject. Requires `sharp`, an optional peer dependency of 20 MB. Returns the
 * input unchanged if no scaling is needed or possible.
 */
export async function fitPicture(
  picture: { content: Buffer; mime: string },
  load: () => Promise<Sharp | undefined> = loadSharp,
): Promise<Picture> {
  const { content, mime } = picture
  const size = imageSize(content.subarray(0, imageHeadBytes))
  const isTooWide = size !== undefined && Math.max(size.width, size.height) > limits.pixels
  if (!isTooWide && content.length <= limits.bytes) return picture
  const sharp = mime.startsWith("image/") ? await load() : undefined
  if (!sharp || !size) return picture
  try {
    const small = sharp(content).autoOrient().resize({
      width: scaledPixels,
      height: scaledPixels,
      fit: "inside",
      withoutEnlargement: true,
    })
    // Uses PNG, which keeps drawings and screenshots sharp. If the PNG exceeds the limit, the image is probably a
    // photo, so JPEG is used.
    const asPng =
      mime === "image/jpeg" ? undefined : await small.clone().png().toBuffer({ resolveWithObject: true })
    const isShort = asPng !== undefined && asPng.data.length <= limits.bytes
    const { data, info } = isShort
      ? asPng
      : await small.flatten({ background: "white" }).jpeg().toBuffer({ resolveWithObject: true })
    return {
      content: data,
      mime: isShort ? "image/png" : "image/jpeg",
      scaled: { from: `${size.width} × ${size.height}`, to: `${info.width} × ${info.height}` },
    }
  } catch {
    // A corrupt image with a valid header is attached unchanged.
    return picture
  }
}

/** Returns `sharp`, or undefined if `sharp` is not installed next to Tackle or does not support this platform. */
async function loadSharp(): Promise<Sharp | undefined> {
  try {
    return (await import("sharp")).default
  } catch {
    return undefined
  }
}

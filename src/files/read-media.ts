import { imageHeadBytes, imageSize } from "../util/image-size.ts"
import { UnreadableContentError } from "./file-errors.ts"
import { type FileStamp, stampBytes } from "./file-tracker.ts"
import { type OpenFile, readChunks } from "./open-file.ts"
import { showName } from "./show-name.ts"

/** 20 MB: the request limit of the largest providers. */
const maxMediaBytes = 20 * 1024 * 1024

/** `bytes` and `stamp` describe the file; `mime`, `url` and `scaled` the attachment. */
export interface Media extends Pick<Picture, "mime" | "scaled"> {
  url: string
  bytes: number
  stamp: FileStamp
}

/**
 * Reads a whole image or document as a data URL and scales down images that providers refuse. Throws
 * {@link UnreadableContentError} above 20 MB, also for a file that grows during the read.
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
    `${showName(path)} has ${bytes} bytes. Images and PDFs can be attached up to ${maxMediaBytes} bytes. ` +
      "Make a smaller copy with a command, or extract the part you need.",
  )
}

/** The strictest image limits of the large providers: 5 MiB of base64, 8000 pixels per side. */
const limits = { bytes: (5 * 1024 * 1024 * 3) / 4, pixels: 8_000 }

/** The longer side of a scaled image. Models do not use a higher resolution. */
const scaledPixels = 2_000

/** An attached image. */
export interface Picture {
  content: Buffer
  mime: string
  /** Set if the image was scaled down: its size before and after, in pixels. */
  scaled?: { from: string; to: string }
}

/** The part of `sharp` that is used. */
type Sharp = typeof import("sharp").default

/**
 * Scales down an image that providers refuse, if `sharp` is installed: it is an optional peer dependency of 20 MB.
 * Returns all other input unchanged.
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
    // PNG keeps drawings and screenshots sharp. A PNG over the limit is a photo: use JPEG.
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
    // A broken image with a valid header is attached unchanged.
    return picture
  }
}

/** Returns undefined if `sharp` is not installed beside Tackle, or not for this platform. */
async function loadSharp(): Promise<Sharp | undefined> {
  try {
    return (await import("sharp")).default
  } catch {
    return undefined
  }
}

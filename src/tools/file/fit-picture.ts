import { imageHeadBytes, imageSize } from "../../util/image-size.ts"

/** What the strictest of the large providers takes of one picture: 5 MiB of base64, 8000 pixels on a side. */
const limits = { bytes: (5 * 1024 * 1024 * 3) / 4, pixels: 8_000 }

/** What a picture is made down to, on its longer side: models look at no more of it. */
const fittingPixels = 2_000

/** A picture as it is attached. */
export interface FittingPicture {
  content: Buffer
  mime: string
  /** It was made smaller: what it was and is now, in pixels. */
  scaled?: { from: string; to: string }
}

/** The part of `sharp` that is used. */
type Sharp = typeof import("sharp").default

/**
 * Makes a picture smaller that providers refuse, where `sharp` is installed beside Tackle: it is an optional peer of 20 MB.
 * One that fits, is no picture that can be read, or cannot be made smaller stays as it is; where it is to be sent, the
 * model is told why it was not.
 */
export async function fitPicture(
  picture: { content: Buffer; mime: string },
  load: () => Promise<Sharp | undefined> = loadSharp,
): Promise<FittingPicture> {
  const { content, mime } = picture
  const size = imageSize(content.subarray(0, imageHeadBytes))
  const isTooWide = size !== undefined && Math.max(size.width, size.height) > limits.pixels
  if (!isTooWide && content.length <= limits.bytes) return picture
  const sharp = mime.startsWith("image/") ? await load() : undefined
  if (!sharp || !size) return picture
  try {
    const small = sharp(content).autoOrient().resize({
      width: fittingPixels,
      height: fittingPixels,
      fit: "inside",
      withoutEnlargement: true,
    })
    // Drawings and screens stay sharp as PNG; what is too long so is a photograph.
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
    // It names a size and is broken all the same: for whoever reads it as it is.
    return picture
  }
}

/** From where Tackle itself is installed. Undefined where it is not there, or not for this machine. */
async function loadSharp(): Promise<Sharp | undefined> {
  try {
    return (await import("sharp")).default
  } catch {
    return undefined
  }
}

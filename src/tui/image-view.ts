import { getCapabilities, getImageDimensions, Image } from "@earendil-works/pi-tui"
import { visible } from "../view/visible.ts"
import { clip } from "./card-parts.ts"
import type { Theme } from "./theme.ts"

/** A file that may be an image. */
export interface ShownFile {
  mime: string
  /** A `data:` URL, or an absolute path. */
  url: string
  filename?: string
}

/** Maximum size of an image in columns and lines. */
const maxColumns = 60
const maxLines = 15
/** Maximum number of Base64 characters of an image that is sent to the terminal. */
const maxCharacters = 3_000_000

/**
 * Formats a file: one line with its name and, for image data, the size. If the terminal can show the image, the image
 * follows as a line with a control sequence and several empty lines. Do not cut or wrap these lines. Data that is not
 * valid Base64 is never sent to the terminal.
 */
export function renderFile({ mime, url, filename }: ShownFile, width: number, theme: Theme): string[] {
  const [, data] = /^data:image\/[\w.+-]+;base64,([A-Za-z0-9+/]+={0,2})$/.exec(url) ?? []
  const size = data === undefined ? null : getImageDimensions(data, mime)
  const facts = size && data !== undefined ? [`${size.widthPx}×${size.heightPx}`, byteCount(data)] : []
  const title = theme.dim(`  + ${[visible(filename ?? mime), ...facts].join(" · ")}`)
  const lines = [clip(title, width)]
  if (!size || data === undefined || !canShow(mime, data)) return lines
  const limits = { maxWidthCells: Math.min(maxColumns, width - 4), maxHeightCells: maxLines }
  const image = new Image(data, mime, { fallbackColor: theme.dim }, limits, size)
  return [...lines, ...image.render(width)]
}

function canShow(mime: string, data: string): boolean {
  const { images } = getCapabilities()
  // Kitty's protocol supports no other format.
  return images !== null && data.length <= maxCharacters && (images !== "kitty" || mime === "image/png")
}

/** Formats the size of Base64 data. */
function byteCount(data: string): string {
  const bytes = Math.floor((data.length * 3) / 4)
  if (bytes < 1_000) return `${bytes} B`
  return bytes < 1_000_000 ? `${Math.round(bytes / 1_000)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`
}

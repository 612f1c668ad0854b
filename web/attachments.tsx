import type { PromptFile } from "../src/schema/input.ts"
import { Icon } from "./icons.tsx"
import { notify } from "./notices.tsx"

/**
 * Maximum total size in bytes of the files in a message. By default, the server accepts 20 MB, and base64 adds a third.
 */
const maxBytes = 14_000_000

/** Size in bytes above which an image is scaled down. Models scale down large images anyway. */
const maxImageBytes = 3_000_000

/** Maximum width and height in pixels of a scaled image. */
const smallerPixels = 2_000

/**
 * Returns a message's present files and the added files. Omits files that cannot be sent, and shows a notice for each.
 */
export async function readFiles(
  added: Iterable<File>,
  present: readonly PromptFile[],
): Promise<readonly PromptFile[]> {
  let files = present
  for (const file of added) {
    try {
      const used = files.reduce((sum, { url }) => sum + url.length * 0.75, 0)
      const read = file.size > maxBytes && !canShrink(file) ? undefined : await readFile(file)
      if (read && used + read.url.length * 0.75 <= maxBytes) files = [...files, read]
      else notify(`“${file.name}” was not added. A message can contain up to 14 MB of files.`, "error")
    } catch {
      notify(`“${file.name}” cannot be read. To attach a directory, mention it as @path.`, "error")
    }
  }
  return files
}

async function readFile(file: File): Promise<PromptFile> {
  const filename = file.name || "file"
  if (canShrink(file) && file.size > maxImageBytes) return { ...(await smaller(file)), filename }
  // Browsers treat `.ts` files as videos.
  const mime = /^(image|audio)\//.test(file.type) ? file.type : await typeOf(file)
  return { mime, url: await dataUrl(new Blob([file], { type: mime })), filename }
}

function canShrink({ type }: File): boolean {
  return /^image\/(png|jpeg|webp)$/.test(type)
}

/** Returns `text/plain` for text in any format, because browsers do not know the types of source files. */
async function typeOf(file: File): Promise<string> {
  const bytes = await file.arrayBuffer()
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes)
    if (!text.includes("\0")) return "text/plain"
  } catch {
    // The file is not text.
  }
  return file.type || "application/octet-stream"
}

async function smaller(file: File): Promise<Pick<PromptFile, "mime" | "url">> {
  const image = await createImageBitmap(file)
  const scale = Math.min(1, smallerPixels / Math.max(image.width, image.height))
  const canvas = new OffscreenCanvas(image.width * scale, image.height * scale)
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height)
  const mime = "image/jpeg"
  return { mime, url: await dataUrl(await canvas.convertToBlob({ type: mime, quality: 0.88 })) }
}

function dataUrl(blob: Blob): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader()
    reader.onload = () => resolve(String(reader.result))
    reader.onerror = () => reject(reader.error)
    reader.readAsDataURL(blob)
  })
}

/** Returns true for a file that the page can show as an image. */
export function isImage({ mime, url }: PromptFile): boolean {
  return mime.startsWith("image/") && url.startsWith("data:")
}

/** The files in a message that is being written. */
export function AttachmentList({
  files,
  onChange,
}: {
  files: readonly PromptFile[]
  onChange(files: readonly PromptFile[]): void
}) {
  if (files.length === 0) return null
  return (
    <ul class="attachments" aria-label="Attached files">
      {files.map((file, index) => (
        <li key={`${file.filename} ${index}`}>
          {isImage(file) ? <img src={file.url} alt="" /> : <Icon name="file" />}
          <span class="name">{file.filename}</span>
          <button
            type="button"
            class="quiet"
            aria-label={`Remove ${file.filename}`}
            onClick={() => onChange(files.toSpliced(index, 1))}
          >
            <Icon name="close" />
          </button>
        </li>
      ))}
    </ul>
  )
}

/** A button that opens the browser's file dialog. */
export function AttachButton({ onFiles }: { onFiles(files: File[]): void }) {
  return (
    <label class="attach" title="Attach images or files">
      <input
        type="file"
        multiple
        class="visually-hidden"
        aria-label="Attach files"
        onChange={({ currentTarget }) => {
          onFiles([...(currentTarget.files ?? [])])
          currentTarget.value = ""
        }}
      />
      <Icon name="attach" />
    </label>
  )
}

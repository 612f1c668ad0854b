import { UnreadableContentError } from "../../files/file-errors.ts"
import type { FileStamp } from "../../files/file-tracker.ts"
import { stampBytes } from "../../files/file-tracker.ts"
import { type OpenFile, readChunks } from "../../files/open-file.ts"
import { showName } from "../../files/show-name.ts"
import { type FittingPicture, fitPicture } from "./fit-picture.ts"

/** 20 MB: what the largest providers take in one request. */
export const maxMediaBytes = 20 * 1024 * 1024

/** `bytes` and `stamp` are those of the file; `mime`, `url` and `scaled` those of what is attached. */
export interface Media extends Pick<FittingPicture, "mime" | "scaled"> {
  url: string
  bytes: number
  stamp: FileStamp
}

/**
 * A whole image or document as a data URL, a picture that providers refuse made smaller where that can be done. Throws
 * {@link UnreadableContentError} above {@link maxMediaBytes}, also for a file that grows while it is read.
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
  const content = Buffer.concat(chunks)
  const { scaled, ...fitting } = await fitPicture({ content, mime: options.mime })
  const url = `data:${fitting.mime};base64,${fitting.content.toString("base64")}`
  return {
    url,
    mime: fitting.mime,
    bytes,
    ...(scaled ? { scaled } : {}),
    stamp: stampBytes(content, mtimeMs),
  }
}

function tooLarge(path: string, bytes: number): UnreadableContentError {
  return new UnreadableContentError(
    `${showName(path)} has ${bytes} bytes; images and PDFs are attached up to ${maxMediaBytes}. ` +
      "Make a smaller copy, or extract what you need, with a command.",
  )
}

import * as z from "zod"

/**
 * A file of the prompt, with its content: a recording reads nothing of the machine that it is played on. Text stands as it
 * is, so that what is another in each place can be marked in it.
 */
export const RecordedFile = z.lazy(() =>
  z.strictObject({
    mime: z.string(),
    filename: z.string().optional(),
    url: z.string().startsWith("data:").optional(),
    text: z.string().optional(),
  }),
)
export type RecordedFile = z.infer<typeof RecordedFile>

interface DataFile {
  mime: string
  url: string
  filename?: string | undefined
}

const textUrl = "data:text/plain;base64,"

/** The file as it is written down. */
export function toRecorded({ url, ...file }: DataFile): RecordedFile {
  if (!url.startsWith(textUrl)) return { ...file, url }
  return { ...file, text: Buffer.from(url.slice(textUrl.length), "base64").toString("utf8") }
}

/** The file as it was attached. */
export function fromRecorded({ mime, filename, url, text = "" }: RecordedFile) {
  return {
    mime,
    url: url ?? `${textUrl}${Buffer.from(text).toString("base64")}`,
    ...(filename === undefined ? {} : { filename }),
  }
}

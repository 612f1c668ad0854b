import type { LanguageModelV4FilePart, LanguageModelV4TextPart } from "@ai-sdk/provider"
import type { ModelInfo, ProviderFamily } from "./model.ts"

/** Media types that a model of the family takes, if it takes files at all. */
const taken: Record<ProviderFamily, RegExp> = {
  "openai-compatible": /^image\//,
  openai: /^(image\/|application\/pdf$)/,
  anthropic: /^(image\/|application\/pdf$)/,
  google: /^(image\/|audio\/|video\/|application\/pdf$)/,
  other: /^image\//,
}

/** A file as parts and attachments carry it: `url` is a data URL or a path. */
export interface SourceFile {
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
  const accepted = model.attachment === true && taken[model.family ?? "openai-compatible"].test(file.mime)
  if (!accepted) return note(file, "this model takes no files of that kind")
  if (data === undefined) return note(file, "its content is not at hand")
  return {
    type: "file",
    mediaType: file.mime,
    data: { type: "data", data },
    ...(file.filename !== undefined && { filename: file.filename }),
  }
}

function note(file: SourceFile, reason: string): LanguageModelV4TextPart {
  const path = file.url.startsWith("data:") ? undefined : file.url
  const name = [file.mime, file.filename ?? path].filter(Boolean).join(", ")
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

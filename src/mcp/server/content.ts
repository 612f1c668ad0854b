import { readFile } from "node:fs/promises"
import { basename, isAbsolute } from "node:path"
import { pathToFileURL } from "node:url"
import type { CallToolResult, ContentBlock } from "@modelcontextprotocol/server"
import type { CallOutcome } from "../../call/context.ts"
import type { Attachment } from "../../schema/tool-state.ts"

/**
 * Converts the outcome of a call to the result for the client. The text that a model would read comes first, followed
 * by attachments as images, audio or resources. A failed call becomes an error result with its message. Rejects if an
 * attached file cannot be read.
 */
export async function contentOf(state: CallOutcome["state"]): Promise<CallToolResult> {
  if (state.status === "error") return { isError: true, content: [{ type: "text", text: state.error }] }
  const attached = await Promise.all((state.attachments ?? []).map(blockOf))
  return { content: [{ type: "text", text: state.output }, ...attached] }
}

/**
 * Converts an attachment to a content block. An attachment without a name is named after `index`. Rejects if the
 * attached file cannot be read.
 */
export async function blockOf(attachment: Attachment, index: number): Promise<ContentBlock> {
  const { mime, url, filename } = attachment
  const data = await base64Of(url)
  if (mime.startsWith("image/")) return { type: "image", data, mimeType: mime }
  if (mime.startsWith("audio/")) return { type: "audio", data, mimeType: mime }
  const uri = uriOf(url, filename ?? `attachment-${index + 1}`)
  if (!mime.startsWith("text/")) return { type: "resource", resource: { uri, mimeType: mime, blob: data } }
  const text = Buffer.from(data, "base64").toString("utf8")
  return { type: "resource", resource: { uri, mimeType: mime, text } }
}

async function base64Of(url: string): Promise<string> {
  if (isAbsolute(url)) return (await readFile(url)).toString("base64")
  const [, encoding, body = ""] = /^data:[^,]*?(;base64)?,(.*)$/s.exec(url) ?? []
  return encoding ? body : Buffer.from(decodeURIComponent(body)).toString("base64")
}

/** Returns the URI that a resource requires. Clients cannot read an `attachment:` URI. */
function uriOf(url: string, name: string): string {
  if (isAbsolute(url)) return pathToFileURL(url).href
  return URL.canParse(name) ? name : `attachment:///${encodeURIComponent(basename(name))}`
}

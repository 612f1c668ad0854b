import type { CallToolResult, ContentBlock } from "@modelcontextprotocol/client"
import type { Attachment } from "../../schema/tool-state.ts"
import type { ToolResult } from "../../tool/result.ts"

/**
 * What a server answered as a result of ours: text and the text of resources for the model, images, sound and other
 * bytes as attachments, links as a line each. `structuredContent` is in the metadata as `structured`, and is the text
 * where there is no other.
 */
export function toToolResult(title: string, result: CallToolResult): ToolResult {
  const { structuredContent } = result
  const { texts, attachments } = contentOf(result.content)
  if (texts.length === 0 && structuredContent) texts.push(JSON.stringify(structuredContent, undefined, 2))
  if (texts.length === 0 && attachments.length > 0) texts.push(`Attached: ${listTypes(attachments)}.`)
  return {
    title,
    output: texts.join("\n\n") || "The tool gave no output.",
    ...(structuredContent ? { metadata: { structured: structuredContent } } : {}),
    ...(attachments.length > 0 ? { attachments } : {}),
  }
}

/** What blocks say, and what they bring along. */
export function contentOf(content: readonly ContentBlock[]): { texts: string[]; attachments: Attachment[] } {
  return {
    texts: content.flatMap((block) => textOf(block) ?? []),
    attachments: content.flatMap((block) => attachmentOf(block) ?? []),
  }
}

function textOf(block: ContentBlock): string | undefined {
  switch (block.type) {
    case "text":
      return block.text
    case "resource":
      return "text" in block.resource ? `${block.resource.uri}\n${block.resource.text}` : undefined
    case "resource_link":
      return [`${block.name}: ${block.uri}`, block.mimeType, block.description].filter(Boolean).join(" - ")
    default:
      return undefined
  }
}

function attachmentOf(block: ContentBlock): Attachment | undefined {
  if (block.type === "image" || block.type === "audio") return attach(block.mimeType, block.data)
  if (block.type !== "resource" || !("blob" in block.resource)) return undefined
  const { uri, mimeType, blob } = block.resource
  return { ...attach(mimeType, blob), filename: uri }
}

function attach(type: string | undefined, base64: string): Attachment {
  // A type of the server's own making could say anything within the address.
  const mime = type !== undefined && /^[\w.+-]+\/[\w.+-]+$/.test(type) ? type : "application/octet-stream"
  return { type: "file", mime, url: `data:${mime};base64,${base64}` }
}

function listTypes(attachments: readonly Attachment[]): string {
  return attachments.map(({ mime }) => mime).join(", ")
}

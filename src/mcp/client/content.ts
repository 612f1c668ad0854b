import type { CallToolResult, ContentBlock, Prompt, PromptMessage } from "@modelcontextprotocol/client"
import type { Attachment } from "../../schema/tool-state.ts"
import type { ToolResult } from "../../tool/tool.ts"

/**
 * Converts a server's result to a tool result. Text and text resources become the output. Images, audio and other
 * binary data become attachments. Each link becomes one line of output. `structuredContent` is stored in the metadata
 * as `structured`, and becomes the output if the result contains no text.
 */
export function toToolResult(title: string, result: CallToolResult): ToolResult {
  const { structuredContent } = result
  const { texts, attachments } = contentOf(result.content)
  if (texts.length === 0 && structuredContent) texts.push(JSON.stringify(structuredContent, undefined, 2))
  if (texts.length === 0 && attachments.length > 0) texts.push(`Attached: ${listTypes(attachments)}.`)
  return {
    title,
    output: texts.join("\n\n") || "The tool returned no output.",
    metadata: structuredContent ? { structured: structuredContent } : undefined,
    attachments: attachments.length > 0 ? attachments : undefined,
  }
}

/** Splits content blocks into texts and attachments. */
function contentOf(content: readonly ContentBlock[]): { texts: string[]; attachments: Attachment[] } {
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
  // An invalid MIME type could change the meaning of the data URL.
  const mime = type !== undefined && /^[\w.+-]+\/[\w.+-]+$/.test(type) ? type : "application/octet-stream"
  return { type: "file", mime, url: `data:${mime};base64,${base64}` }
}

function listTypes(attachments: readonly Attachment[]): string {
  return attachments.map(({ mime }) => mime).join(", ")
}

/** A prompt that a server offers to users as a command, such as `/server:name`. */
export interface McpPrompt {
  /** Id of the server in the config. */
  server: string
  name: string
  title?: string
  description?: string
  /** Arguments in the order in which a user types them. */
  arguments: { name: string; description?: string; required: boolean }[]
}

/** A message of a filled-in prompt. `text` is empty if the message has only attachments. */
export interface McpPromptMessage {
  role: "user" | "assistant"
  text: string
  attachments: Attachment[]
}

/** Converts a prompt from the protocol's format. */
export function toPrompt(server: string, { name, title, description, arguments: args }: Prompt): McpPrompt {
  return {
    server,
    name,
    title,
    description,
    arguments: (args ?? []).map(({ name, description, required }) => ({
      name,
      description,
      required: required ?? false,
    })),
  }
}

/** Converts a message of a filled-in prompt from the protocol's format. */
export function toPromptMessage({ role, content }: PromptMessage): McpPromptMessage {
  const { texts, attachments } = contentOf([content])
  return { role, text: texts.join("\n\n"), attachments }
}

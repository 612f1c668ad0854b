import type { Prompt, PromptMessage } from "@modelcontextprotocol/client"
import type { Attachment } from "../../schema/tool-state.ts"
import { contentOf } from "./result.ts"

/** A prompt that a server offers to users, as a command such as `/server:name`. */
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

import type { Prompt, PromptMessage } from "@modelcontextprotocol/client"
import type { Attachment } from "../../schema/tool-state.ts"
import { contentOf } from "./result.ts"

/** A prompt that a server offers to people, as a command such as `/server:name`. */
export interface McpPrompt {
  /** Id of the server in the config. */
  server: string
  name: string
  title?: string
  description?: string
  /** In the order in which a person gives them. */
  arguments: { name: string; description?: string; required: boolean }[]
}

/** One message of a prompt, filled in. `text` is empty where there are only attachments. */
export interface McpPromptMessage {
  role: "user" | "assistant"
  text: string
  attachments: Attachment[]
}

/** What a server says of a prompt, in our words. */
export function toPrompt(server: string, { name, title, description, arguments: args }: Prompt): McpPrompt {
  return {
    server,
    name,
    ...(title === undefined ? {} : { title }),
    ...(description === undefined ? {} : { description }),
    arguments: (args ?? []).map(({ name, description, required }) => ({
      name,
      ...(description === undefined ? {} : { description }),
      required: required ?? false,
    })),
  }
}

/** A message of a prompt that was filled in, its content as the content of results. */
export function toPromptMessage({ role, content }: PromptMessage): McpPromptMessage {
  const { texts, attachments } = contentOf([content])
  return { role, text: texts.join("\n\n"), attachments }
}

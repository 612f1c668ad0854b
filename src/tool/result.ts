import type { Attachment } from "../schema/tool-state.ts"

/** What a tool gives back. */
export interface ToolResult {
  /** For people: a short line, such as the path or the command. */
  title: string
  /** For the model. */
  output: string
  /** For programs and interfaces. With `truncated` already set, the output is not cut again. */
  metadata?: Record<string, unknown>
  attachments?: Attachment[]
}

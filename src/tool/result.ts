import type { Attachment } from "../schema/tool-state.ts"

/** Who works from the next step on, and what the session is told in the name of the engine. */
export interface Handover {
  /** Name of the agent. */
  agent: string
  message: string
}

/** What a tool gives back. */
export interface ToolResult {
  /** For people: a short line, such as the path or the command. */
  title: string
  /** For the model. */
  output: string
  /** For programs and interfaces. With `truncated` already set, the output is not cut again. */
  metadata?: Record<string, unknown>
  attachments?: Attachment[]
  /** The session goes on as another agent. Only a built-in tool's word counts. */
  handover?: Handover
}

import type { AssistantMessage, MessageWithParts, ModelRef, UserMessage } from "../../src/schema/message.ts"
import type { Part } from "../../src/schema/part.ts"
import type { ToolState } from "../../src/schema/tool-state.ts"

export const ref: ModelRef = { providerID: "test", modelID: "m" }

type Loose<P> = P extends Part ? Omit<P, "id" | "sessionID" | "messageID"> : never

let counter = 0

/** A user message; a text stands for one text part. */
export function user(...contents: (string | Loose<Part>)[]): MessageWithParts {
  const message: UserMessage = {
    id: `msg_${++counter}`,
    sessionID: "ses",
    role: "user",
    time: { created: 1 },
    agent: "build",
    model: ref,
  }
  return { message, parts: contents.map((content) => complete(message.id, content)) }
}

/** A finished assistant message of the model `ref`. */
export function assistant(
  ...contents: (string | Loose<Part>)[]
): MessageWithParts & { message: AssistantMessage } {
  const message: AssistantMessage = {
    id: `msg_${++counter}`,
    sessionID: "ses",
    role: "assistant",
    parentID: "msg_0",
    time: { created: 1, completed: 2 },
    agent: "build",
    model: ref,
    path: { cwd: "/w", root: "/w" },
    cost: 0,
    tokens: { input: 0, output: 0, reasoning: 0, cache: { read: 0, write: 0 } },
  }
  return { message, parts: contents.map((content) => complete(message.id, content)) }
}

export function call(tool: string, callID: string, state: ToolState): Loose<Part> {
  return { type: "tool", tool, callID, state }
}

export function completed(
  input: Record<string, unknown>,
  output: string,
  attachments?: Extract<ToolState, { status: "completed" }>["attachments"],
): ToolState {
  const state: ToolState = {
    status: "completed",
    input,
    output,
    title: "",
    metadata: {},
    time: { start: 1, end: 2 },
  }
  return attachments ? { ...state, attachments } : state
}

export function failed(input: Record<string, unknown>, error: string): ToolState {
  return { status: "error", input, error, time: { start: 1, end: 2 } }
}

function complete(messageID: string, content: string | Loose<Part>): Part {
  const base = { id: `prt_${++counter}`, sessionID: "ses", messageID }
  if (typeof content === "string") return { ...base, type: "text", text: content }
  return { ...base, ...content } as Part
}

import * as z from "zod"
import type { ToolPart } from "../schema/part.ts"
import type { PermissionRequest } from "../schema/permission.ts"
import { createEventMapper, type EventMapper, type MapperOptions, type Protocol } from "./event-mapper.ts"

/** A chunk of the AI SDK's UI message stream, version 1. */
export interface UiChunk {
  type: string
  [field: string]: unknown
}

/** Metadata of a message. The client sends it back with the message, so that the server can continue the stream. */
const Metadata = z.object({
  tackle: z.object({
    sessionID: z.string(),
    /** Number of the last event that is included in the message. */
    seq: z.number().int().min(0),
  }),
})

const ToolPartOfClient = z.looseObject({
  toolCallId: z.string(),
  state: z.string(),
  approval: z
    .looseObject({ id: z.string(), approved: z.boolean().optional(), reason: z.string().optional() })
    .optional(),
})

/**
 * Body of a request from the AI SDK's chat transport. The server reads only the last message, because it stores the
 * session itself.
 */
export const ChatRequest = z.looseObject({
  messages: z
    .array(
      z.looseObject({
        id: z.string(),
        role: z.enum(["user", "assistant", "system"]),
        metadata: z.unknown().optional(),
        parts: z.array(z.looseObject({ type: z.string() })),
      }),
    )
    .min(1),
})

/** The parsed last message in a chat: new text from the user, or answers to permission requests. */
export type ChatTurn =
  | { kind: "send"; id: string; text: string; files: { mime: string; url: string; filename?: string }[] }
  | {
      kind: "answer"
      id: string
      after: number
      answers: { id: string; approved: boolean; reason?: string }[]
    }

/**
 * Parses the last message in a request: new text from the user, or approvals for tool calls. Returns undefined for any
 * other message.
 */
export function readTurn({ messages }: z.infer<typeof ChatRequest>): ChatTurn | undefined {
  const last = messages.at(-1)
  if (last?.role === "user") {
    const text = last.parts.flatMap((part) =>
      part.type === "text" && typeof part.text === "string" ? [part.text] : [],
    )
    const files = last.parts.flatMap((part) =>
      part.type === "file" && typeof part.url === "string" && typeof part.mediaType === "string"
        ? [
            {
              mime: part.mediaType,
              url: part.url,
              ...(typeof part.filename === "string" && { filename: part.filename }),
            },
          ]
        : [],
    )
    return { kind: "send", id: last.id, text: text.join("\n"), files }
  }
  const metadata = Metadata.safeParse(last?.metadata)
  if (last?.role !== "assistant" || !metadata.success) return undefined
  const answers = last.parts.flatMap((part) => {
    const { data } = ToolPartOfClient.safeParse(part)
    const { id, approved, reason } = data?.approval ?? {}
    return data?.state === "approval-responded" && id !== undefined && approved !== undefined
      ? [{ id, approved, ...(reason !== undefined && { reason }) }]
      : []
  })
  if (answers.length === 0) return undefined
  return { kind: "answer", id: last.id, after: metadata.data.tackle.seq, answers }
}

/**
 * Creates a mapper from a session's events to the chunks of one message. `messageID` is the message that the client
 * continues, if any. `open` returns the unanswered permission requests from the session and its subagents.
 */
export function createUiStream({
  sessionID,
  messageID: messageId,
  open,
  ...options
}: MapperOptions & {
  sessionID: string
  messageID?: string
  open(): readonly PermissionRequest[]
}): EventMapper<UiChunk> {
  /** Ends a message. The metadata contains the number that the client sends with its next request. */
  function finish(seq: number, ...last: UiChunk[]): UiChunk[] {
    return [metadata({ seq }), ...last]
  }

  function metadata(tackle: { seq: number; notice?: string | undefined }): UiChunk {
    return { type: "message-metadata", messageMetadata: { tackle: { sessionID, ...tackle } } }
  }

  function fail(seq: number, errorText: string): UiChunk[] {
    return finish(seq, { type: "error", errorText }, { type: "finish", finishReason: "error" })
  }

  const protocol: Protocol<UiChunk> = {
    start: () => [{ type: "start", messageId }],
    textStart: ({ id, type }) => [{ type: `${type}-start`, id }],
    textDelta: ({ id, type }, delta) => [{ type: `${type}-delta`, id, delta }],
    textEnd: ({ id, type }) => [{ type: `${type}-end`, id }],
    step: (what) => [{ type: `${what}-step` }],
    callStart: (part) => [{ type: "tool-input-start", ...callOf(part) }],
    callInput: (part) => [{ type: "tool-input-available", ...callOf(part), input: part.state.input }],
    callResult: resultChunks,
    // The client answers these requests in its next HTTP request.
    waiting({ seq, knows }) {
      const requests = open().flatMap((request) => {
        const toolCallId = request.tool?.parent?.callID ?? request.tool?.callID
        if (toolCallId === undefined || !knows(toolCallId)) return []
        const reason = `${request.permission}: ${request.patterns.join(", ")}`
        return [{ type: "tool-approval-request", approvalId: request.id, toolCallId, reason }]
      })
      if (requests.length === 0) return []
      return [...requests, ...finish(seq, { type: "finish", finishReason: "tool-calls" })]
    },
    completed({ status }, { seq, error }) {
      if (status === "interrupted") return finish(seq, { type: "abort" })
      if (status === "failed") return fail(seq, error ?? "The run failed.")
      if (status === "incomplete")
        return [metadata({ seq, notice: error }), { type: "finish", finishReason: "other" }]
      return finish(seq, { type: "finish", finishReason: status === "limit" ? "length" : "stop" })
    },
    withdrawn: ({ seq }) => finish(seq, { type: "abort" }),
    failed: (message, { seq }) => fail(seq, message),
  }
  return createEventMapper(protocol, options)
}

function callOf({ callID, tool }: ToolPart) {
  return { toolCallId: callID, toolName: tool, dynamic: true }
}

function resultChunks({ callID: toolCallId, state }: ToolPart): UiChunk[] {
  if (state.status === "completed") {
    const { title, output, metadata } = state
    const result = { title, output, metadata }
    return [{ type: "tool-output-available", toolCallId, dynamic: true, output: result }]
  }
  if (state.status !== "error") return []
  if (state.metadata?.kind === "refused") return [{ type: "tool-output-denied", toolCallId }]
  return [{ type: "tool-output-error", toolCallId, dynamic: true, errorText: state.error }]
}

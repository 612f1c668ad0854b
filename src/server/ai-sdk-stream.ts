import * as z from "zod"
import type { RunStatus, TackleEvent } from "../event/events.ts"
import type { Input } from "../schema/input.ts"
import type { Part, ToolPart } from "../schema/part.ts"
import type { PermissionRequest } from "../schema/permission.ts"
import type { EventMapper } from "./mapped-stream.ts"

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
 * Body of a request by the AI SDK's chat transport. The server reads only the last message, because it stores the
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

/** The parsed last message of a chat, which sends a text of the user or answers permission requests. */
export type ChatTurn =
  | { kind: "send"; id: string; text: string; files: { mime: string; url: string; filename?: string }[] }
  | {
      kind: "answer"
      id: string
      after: number
      answers: { id: string; approved: boolean; reason?: string }[]
    }

/** Parses the last message of a request, which contains a new text of the user or approvals of tool calls. */
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
 * Creates a mapper from the events of a session to the chunks of one message. `messageID` is the message that the
 * client continues, if any, and `known` contains the calls in that message. If `inputID` is set, the mapper ignores
 * events before the run that answers this input. The mapper omits messages up to `since`. `open` returns the
 * unanswered permission requests of the session.
 */
export function createUiStream({
  sessionID,
  messageID,
  known = [],
  inputID,
  since = "",
  open,
}: {
  sessionID: string
  messageID?: string
  known?: readonly string[]
  inputID?: string | undefined
  since?: string
  open(): readonly PermissionRequest[]
}): EventMapper<UiChunk> {
  /** Ids of the user's messages. The client already has their parts. */
  const fromUser = new Set<string>()
  /** The number of characters sent so far, for each text or reasoning part that is not complete. */
  const texts = new Map<string, { type: "text" | "reasoning"; length: number }>()
  const closedTexts = new Set<string>()
  const calls = new Map<string, ToolPart["state"]["status"]>()
  for (const id of known) calls.set(id, "running")
  let delivered = inputID === undefined
  let started = false
  let ended = false
  let seq = 0

  function start(): UiChunk[] {
    if (started) return []
    started = true
    return [{ type: "start", ...(messageID !== undefined && { messageId: messageID }) }]
  }

  function end(last: UiChunk): UiChunk[] {
    ended = true
    const open = [...texts].map(([id, { type }]) => ({ type: `${type}-end`, id }))
    const messageMetadata = { tackle: { sessionID, seq } }
    return [...start(), ...open, { type: "message-metadata", messageMetadata }, last]
  }

  function textChunks(part: Extract<Part, { type: "text" | "reasoning" }>): UiChunk[] {
    const { id, type, text, time } = part
    if (closedTexts.has(id)) return []
    const chunks: UiChunk[] = []
    const known = texts.get(id)
    if (!known) chunks.push({ type: `${type}-start`, id })
    const rest = text.slice(known?.length ?? 0)
    if (rest !== "") chunks.push({ type: `${type}-delta`, id, delta: rest })
    texts.set(id, { type, length: text.length })
    if (time?.end === undefined) return chunks
    texts.delete(id)
    closedTexts.add(id)
    return [...chunks, { type: `${type}-end`, id }]
  }

  function callChunks({ callID: toolCallId, tool: toolName, state }: ToolPart): UiChunk[] {
    const before = calls.get(toolCallId)
    calls.set(toolCallId, state.status)
    const chunks: UiChunk[] = []
    const call = { toolCallId, toolName, dynamic: true }
    if (before === undefined) chunks.push({ type: "tool-input-start", ...call })
    const isKnown = before !== undefined && before !== "pending"
    if (state.status !== "pending" && !isKnown)
      chunks.push({ type: "tool-input-available", ...call, input: state.input })
    if (before === state.status) return chunks
    if (state.status === "completed") {
      const { title, output, metadata } = state
      chunks.push({
        type: "tool-output-available",
        toolCallId,
        dynamic: true,
        output: { title, output, metadata },
      })
    } else if (state.status === "error") {
      chunks.push(
        state.metadata?.kind === "refused"
          ? { type: "tool-output-denied", toolCallId }
          : { type: "tool-output-error", toolCallId, dynamic: true, errorText: state.error },
      )
    }
    return chunks
  }

  function partChunks(part: Part): UiChunk[] {
    if (fromUser.has(part.messageID) || part.messageID <= since) return []
    switch (part.type) {
      case "text":
      case "reasoning":
        return textChunks(part)
      case "tool":
        // The result of the parent call contains the results of its calls.
        return part.parentCallID === undefined ? callChunks(part) : []
      case "step-start":
        return [{ type: "start-step" }]
      case "step-finish":
        return [{ type: "finish-step" }]
      default:
        return []
    }
  }

  function delta(partID: string, field: "text" | "raw", text: string): UiChunk[] {
    const known = texts.get(partID)
    if (field !== "text" || !known) return []
    known.length += text.length
    return [{ type: `${known.type}-delta`, id: partID, delta: text }]
  }

  /** Ends the message with the requests that wait for the user. The client answers them in its next HTTP request. */
  function ask(): UiChunk[] {
    const requests = open().flatMap((request) => {
      const toolCallId = request.tool?.parent?.callID ?? request.tool?.callID
      if (toolCallId === undefined || !calls.has(toolCallId)) return []
      const reason = `${request.permission}: ${request.patterns.join(", ")}`
      return [{ type: "tool-approval-request", approvalId: request.id, toolCallId, reason }]
    })
    if (requests.length === 0) return []
    return [...start(), ...requests, ...end({ type: "finish", finishReason: "tool-calls" })]
  }

  return {
    caughtUp: () => (!ended && open().length > 0 ? ask() : []),
    failed: (errorText) => [...start(), { type: "error", errorText }],
    get ended() {
      return ended
    },
    convert(event) {
      if (ended) return []
      seq = event.seq ?? seq
      switch (event.type) {
        case "message.created":
        case "message.updated":
          if (event.message.role === "user") fromUser.add(event.message.id)
          return []
        case "input.updated":
          return event.input.id === inputID ? inputChunks(event.input) : []
        default:
          return delivered ? runChunks(event) : []
      }
    },
  }

  function inputChunks({ state, problem }: Input): UiChunk[] {
    if (state === "promoted") delivered = true
    if (state === "withdrawn") return end({ type: "abort" })
    if (problem === undefined) return []
    return [
      ...start(),
      { type: "error", errorText: problem },
      ...end({ type: "finish", finishReason: "error" }),
    ]
  }

  function runChunks(event: TackleEvent): UiChunk[] {
    switch (event.type) {
      case "part.updated": {
        const chunks = partChunks(event.part)
        return chunks.length > 0 ? [...start(), ...chunks] : []
      }
      case "part.delta":
        return delta(event.partID, event.field, event.delta)
      case "part.removed":
        // These are the parts of a failed attempt, which is repeated in the same step.
        return [...start(), { type: "reset-step" }]
      case "permission.asked":
        return ask()
      case "session.error":
        return [...start(), { type: "error", errorText: event.error.message }]
      case "run.completed":
        return end(lastChunk(event.status))
      default:
        return []
    }
  }
}

function lastChunk(status: RunStatus): UiChunk {
  if (status === "interrupted") return { type: "abort" }
  const reasons = { completed: "stop", failed: "error", limit: "length" } as const
  return { type: "finish", finishReason: reasons[status] }
}

import * as z from "zod"
import type { ToolPart } from "../schema/part.ts"
import { QuestionAnswers } from "../schema/question.ts"
import { createEventMapper, type EventMapper, type MapperOptions, type StreamedText } from "./event-mapper.ts"
import type { RequestAnswer, WaitingRequests } from "./mapped-stream.ts"

/** An AG-UI 1.0 event. */
export interface AguiEvent {
  type: string
  [field: string]: unknown
}

const ClientMessage = z.looseObject({
  id: z.string(),
  role: z.string(),
  content: z.unknown().optional(),
  toolCalls: z.array(z.looseObject({ id: z.string() })).optional(),
  toolCallId: z.string().optional(),
})

/** Body of a request from an AG-UI client. The server ignores the client's `tools`, `context` and `state`. */
export const AguiRequest = z.looseObject({
  threadId: z.string(),
  runId: z.string(),
  messages: z.array(ClientMessage),
  resume: z
    .array(
      z.looseObject({
        interruptId: z.string(),
        status: z.enum(["resolved", "cancelled"]),
        payload: z.unknown().optional(),
      }),
    )
    .optional(),
})

/**
 * An answer to an interrupt. `after` is the number of the last event that the client received before the interrupt.
 */
export interface InterruptAnswer extends RequestAnswer {
  after: number
}

/** The parsed request from an AG-UI client: new text from the user, or answers to interrupts. */
export type AguiTurn =
  | { kind: "send"; id: string; text: string }
  | { kind: "answer"; answers: InterruptAnswer[] }

/** JSON Schema for the payload that answers a permission request. */
const permissionSchema = {
  type: "object",
  properties: {
    approved: { type: "boolean" },
    scope: { enum: ["once", "session", "project"] },
    message: { type: "string" },
  },
  required: ["approved"],
}

/** JSON Schema for the payload that answers questions. */
const questionSchema = {
  type: "object",
  properties: { answers: { type: "array", items: { type: "array", items: { type: "string" } } } },
  required: ["answers"],
}

const PermissionPayload = z.object({
  approved: z.boolean(),
  scope: z.enum(["once", "session", "project"]).default("once"),
  message: z.string().optional(),
})

/**
 * Parses the answers in a request or, if it has no answers, its last message. Returns undefined if an answer is
 * invalid, or if the last message is not from the user.
 */
export function readAguiTurn({ messages, resume = [] }: z.infer<typeof AguiRequest>): AguiTurn | undefined {
  if (resume.length > 0) {
    const answers = resume.map(({ interruptId, status, payload }) => readAnswer(interruptId, status, payload))
    return answers.every((answer) => answer !== undefined) ? { kind: "answer", answers } : undefined
  }
  const last = messages.at(-1)
  if (last?.role !== "user") return undefined
  return { kind: "send", id: last.id, text: textOf(last.content) }
}

function readAnswer(interruptID: string, status: string, payload: unknown): InterruptAnswer | undefined {
  const [, requestID, after] = /^(.+)@(\d+)$/.exec(interruptID) ?? []
  if (requestID === undefined) return undefined
  const base = { requestID, after: Number(after) }
  if (requestID.startsWith("que_")) {
    const { data } = z.object({ answers: QuestionAnswers }).safeParse(payload)
    if (status === "cancelled") return { ...base, reply: { dismissed: true } }
    return data && { ...base, reply: data }
  }
  if (status === "cancelled") return { ...base, reply: { reply: "reject" } }
  const { data } = PermissionPayload.safeParse(payload)
  if (!data) return undefined
  const { approved, scope, message } = data
  if (!approved) return { ...base, reply: { reply: "reject", message } }
  return { ...base, reply: scope === "once" ? { reply: "once" } : { reply: "always", scope } }
}

function textOf(content: unknown): string {
  if (typeof content === "string") return content
  const parts = z.array(z.looseObject({ type: z.string(), text: z.string().optional() })).safeParse(content)
  return (parts.data ?? []).flatMap(({ text }) => text ?? []).join("\n")
}

/** Returns the ids of the calls that the client knows, and the ids of the calls whose results the client knows. */
export function knownCalls({ messages }: z.infer<typeof AguiRequest>): {
  calls: string[]
  results: string[]
} {
  return {
    calls: messages.flatMap(({ toolCalls = [] }) => toolCalls.map(({ id }) => id)),
    results: messages.flatMap(({ toolCallId }) => toolCallId ?? []),
  }
}

/** Creates a mapper from the events of one run to AG-UI events. */
export function createAguiStream({
  run,
  waiting: requests,
  ...options
}: MapperOptions & {
  run: { threadId: string; runId: string }
  waiting: WaitingRequests
}): EventMapper<AguiEvent> {
  const finished = (more: object): AguiEvent[] => [{ type: "RUN_FINISHED", ...run, ...more }]

  return createEventMapper<AguiEvent>(
    {
      start: () => [{ type: "RUN_STARTED", ...run }],
      textStart,
      textDelta,
      textEnd,
      callStart: ({ callID: toolCallId, tool: toolCallName, messageID: parentMessageId }) => [
        { type: "TOOL_CALL_START", toolCallId, toolCallName, parentMessageId },
      ],
      callInput: ({ callID: toolCallId, state }) => [
        { type: "TOOL_CALL_ARGS", toolCallId, delta: JSON.stringify(state.input) },
        { type: "TOOL_CALL_END", toolCallId },
      ],
      callResult: ({ id, callID: toolCallId, state }) => {
        const content = state.status === "error" ? `Error: ${state.error}` : outputOf(state)
        return [{ type: "TOOL_CALL_RESULT", messageId: `${id}-result`, toolCallId, content, role: "tool" }]
      },
      callCancelled: (toolCallId) => [{ type: "TOOL_CALL_END", toolCallId }],
      waiting({ seq }) {
        const interrupts = interruptsOf(requests, seq)
        return interrupts.length === 0 ? [] : finished({ outcome: { type: "interrupt", interrupts } })
      },
      completed({ status, text }, { error }) {
        if (status === "interrupted") return finished({ outcome: { type: "cancelled" } })
        if (status === "failed") return [{ type: "RUN_ERROR", message: error ?? "The run failed." }]
        return finished({ outcome: { type: "success" }, result: { status, text, error } })
      },
      withdrawn: () => finished({ outcome: { type: "cancelled" } }),
      failed: (message) => [{ type: "RUN_ERROR", message }],
    },
    options,
  )
}

function outputOf(state: ToolPart["state"]): string {
  return state.status === "completed" ? state.output : ""
}

/**
 * Returns the requests that wait for the user, as interrupts. The id of each interrupt contains the number of the
 * latest event. When the client answers, the stream continues after this event.
 */
function interruptsOf(waiting: WaitingRequests, seq: number): object[] {
  const permissions = waiting.permissions().map((request) => ({
    id: `${request.id}@${seq}`,
    reason: "permission",
    message: `${request.permission}: ${request.patterns.join(", ")}`,
    toolCallId: request.tool?.parent?.callID ?? request.tool?.callID,
    responseSchema: permissionSchema,
    metadata: { request },
  }))
  const questions = waiting.questions().map((request) => ({
    id: `${request.id}@${seq}`,
    reason: "question",
    message: request.questions.map(({ question }) => question).join("\n"),
    toolCallId: request.tool?.callID,
    responseSchema: questionSchema,
    metadata: { request },
  }))
  return [...permissions, ...questions]
}

function textStart({ id: messageId, type }: StreamedText): AguiEvent[] {
  if (type === "text") return [{ type: "TEXT_MESSAGE_START", messageId, role: "assistant" }]
  return [
    { type: "REASONING_START", messageId },
    { type: "REASONING_MESSAGE_START", messageId, role: "reasoning" },
  ]
}

function textDelta({ id: messageId, type }: StreamedText, delta: string): AguiEvent[] {
  return [{ type: type === "text" ? "TEXT_MESSAGE_CONTENT" : "REASONING_MESSAGE_CONTENT", messageId, delta }]
}

function textEnd({ id: messageId, type }: StreamedText): AguiEvent[] {
  if (type === "text") return [{ type: "TEXT_MESSAGE_END", messageId }]
  return [
    { type: "REASONING_MESSAGE_END", messageId },
    { type: "REASONING_END", messageId },
  ]
}

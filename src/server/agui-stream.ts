import * as z from "zod"
import type { EventOf, TackleEvent } from "../event/events.ts"
import type { Input } from "../schema/input.ts"
import type { Part, ToolPart } from "../schema/part.ts"
import { QuestionAnswers } from "../schema/question.ts"
import type { EventMapper, RequestAnswer, WaitingRequests } from "./mapped-stream.ts"

/** An event of AG-UI 1.0. */
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

/** Body of a request by an AG-UI client. The server ignores the client's `tools`, `context` and `state`. */
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
 * An answer to an interrupt. `after` is the number of the last event that the client had received at the interrupt.
 */
export interface InterruptAnswer extends RequestAnswer {
  after: number
}

/** A parsed request of an AG-UI client, which sends a new text of the user or answers interrupts. */
export type AguiTurn =
  | { kind: "send"; id: string; text: string }
  | { kind: "answer"; answers: InterruptAnswer[] }

/** JSON Schema of the payload that answers a permission request. */
const permissionSchema = {
  type: "object",
  properties: {
    approved: { type: "boolean" },
    scope: { enum: ["once", "session", "project"] },
    message: { type: "string" },
  },
  required: ["approved"],
}

/** JSON Schema of the payload that answers questions. */
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
 * Parses the messages and answers of a request. Returns undefined if they contain neither a text of the user nor a
 * valid answer.
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

/** Returns the ids of the calls and results that the client knows. */
export function knownCalls({ messages }: z.infer<typeof AguiRequest>): {
  calls: string[]
  results: string[]
} {
  return {
    calls: messages.flatMap(({ toolCalls = [] }) => toolCalls.map(({ id }) => id)),
    results: messages.flatMap(({ toolCallId }) => toolCallId ?? []),
  }
}

/**
 * Creates a mapper from the events of one run to AG-UI. `known` contains the calls and results that the client already
 * has. If `inputID` is set, the mapper ignores events before the run that answers this input.
 */
export function createAguiStream({
  run,
  known = { calls: [], results: [] },
  inputID,
  after,
  waiting,
}: {
  run: { threadId: string; runId: string }
  known?: { calls: readonly string[]; results: readonly string[] }
  inputID?: string | undefined
  /** Number of the last event that the client knows. */
  after: number
  waiting: WaitingRequests
}): EventMapper<AguiEvent> {
  const fromUser = new Set<string>()
  /** The number of characters sent so far, for each text or reasoning part that is not complete. */
  const texts = new Map<string, { type: "text" | "reasoning"; length: number }>()
  const closedTexts = new Set<string>()
  const calls = new Map<string, "started" | "ended" | "done">()
  for (const id of known.calls) calls.set(id, "ended")
  for (const id of known.results) calls.set(id, "done")
  let delivered = inputID === undefined
  let seq = after
  let started = false
  let ended = false

  function start(): AguiEvent[] {
    if (started) return []
    started = true
    return [{ type: "RUN_STARTED", ...run }]
  }

  function end(last: AguiEvent): AguiEvent[] {
    ended = true
    const openTexts = [...texts].flatMap(([id, { type }]) => textEnd(id, type))
    const openCalls = [...calls].flatMap(([toolCallId, state]) =>
      state === "started" ? [{ type: "TOOL_CALL_END", toolCallId }] : [],
    )
    return [...start(), ...openTexts, ...openCalls, last]
  }

  function textEvents(part: Extract<Part, { type: "text" | "reasoning" }>): AguiEvent[] {
    const { id, type, text, time } = part
    if (closedTexts.has(id)) return []
    const open = texts.get(id)
    const rest = text.slice(open?.length ?? 0)
    const events = [...(open ? [] : textStart(id, type)), ...(rest === "" ? [] : [textDelta(id, type, rest)])]
    texts.set(id, { type, length: text.length })
    if (time?.end === undefined) return events
    texts.delete(id)
    closedTexts.add(id)
    return [...events, ...textEnd(id, type)]
  }

  function callEvents({ id, callID: toolCallId, tool, messageID, state }: ToolPart): AguiEvent[] {
    const events: AguiEvent[] = []
    if (!calls.has(toolCallId)) {
      calls.set(toolCallId, "started")
      const name = { toolCallId, toolCallName: tool, parentMessageId: messageID }
      events.push({ type: "TOOL_CALL_START", ...name })
    }
    if (state.status !== "pending" && calls.get(toolCallId) === "started") {
      calls.set(toolCallId, "ended")
      events.push({ type: "TOOL_CALL_ARGS", toolCallId, delta: JSON.stringify(state.input) })
      events.push({ type: "TOOL_CALL_END", toolCallId })
    }
    const isFinal = state.status === "completed" || state.status === "error"
    if (isFinal && calls.get(toolCallId) === "ended") {
      calls.set(toolCallId, "done")
      const content = state.status === "completed" ? state.output : `Error: ${state.error}`
      events.push({ type: "TOOL_CALL_RESULT", messageId: `${id}-result`, toolCallId, content, role: "tool" })
    }
    return events
  }

  function partEvents(part: Part): AguiEvent[] {
    if (fromUser.has(part.messageID)) return []
    if (part.type === "text" || part.type === "reasoning") return textEvents(part)
    // The result of the parent call contains the results of its calls.
    return part.type === "tool" && part.parentCallID === undefined ? callEvents(part) : []
  }

  /**
   * Ends the run with the requests that wait for the user. The id of each interrupt contains the number of the last
   * event, so that the answer continues the stream there.
   */
  function interrupt(): AguiEvent[] {
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
    const interrupts = [...permissions, ...questions]
    if (interrupts.length === 0) return []
    return end({ type: "RUN_FINISHED", ...run, outcome: { type: "interrupt", interrupts } })
  }

  function runEnd({ status, text }: EventOf<"run.completed">, error: string | undefined): AguiEvent[] {
    if (status === "interrupted") return end({ type: "RUN_FINISHED", ...run, outcome: { type: "cancelled" } })
    if (status === "failed") return end({ type: "RUN_ERROR", message: error ?? "The run failed." })
    return end({ type: "RUN_FINISHED", ...run, outcome: { type: "success" }, result: { status, text } })
  }

  let error: string | undefined
  return {
    get ended() {
      return ended
    },
    caughtUp: () => (ended || inputID !== undefined ? [] : interrupt()),
    failed: (message) => end({ type: "RUN_ERROR", message }),
    convert(event) {
      if (ended) return []
      seq = event.seq ?? seq
      switch (event.type) {
        case "message.created":
        case "message.updated":
          if (event.message.role === "user") fromUser.add(event.message.id)
          return start()
        case "input.updated":
          return [...start(), ...(event.input.id === inputID ? inputEvents(event.input) : [])]
        default:
          return delivered ? runEvents(event) : []
      }
    },
  }

  function inputEvents({ state, problem }: Input): AguiEvent[] {
    if (state === "promoted") delivered = true
    if (state === "withdrawn") return end({ type: "RUN_FINISHED", ...run, outcome: { type: "cancelled" } })
    return problem === undefined ? [] : end({ type: "RUN_ERROR", message: problem })
  }

  function runEvents(event: TackleEvent): AguiEvent[] {
    switch (event.type) {
      case "part.updated":
        return [...start(), ...partEvents(event.part)]
      case "part.delta": {
        const open = texts.get(event.partID)
        if (event.field !== "text" || !open) return []
        open.length += event.delta.length
        return [textDelta(event.partID, open.type, event.delta)]
      }
      case "permission.asked":
      case "question.asked":
        return interrupt()
      case "session.error":
        error = event.error.message
        return []
      case "run.completed":
        return runEnd(event, error)
      default:
        return []
    }
  }
}

function textStart(messageId: string, type: "text" | "reasoning"): AguiEvent[] {
  if (type === "text") return [{ type: "TEXT_MESSAGE_START", messageId, role: "assistant" }]
  return [
    { type: "REASONING_START", messageId },
    { type: "REASONING_MESSAGE_START", messageId, role: "reasoning" },
  ]
}

function textDelta(messageId: string, type: "text" | "reasoning", delta: string): AguiEvent {
  return { type: type === "text" ? "TEXT_MESSAGE_CONTENT" : "REASONING_MESSAGE_CONTENT", messageId, delta }
}

function textEnd(messageId: string, type: "text" | "reasoning"): AguiEvent[] {
  if (type === "text") return [{ type: "TEXT_MESSAGE_END", messageId }]
  return [
    { type: "REASONING_MESSAGE_END", messageId },
    { type: "REASONING_END", messageId },
  ]
}

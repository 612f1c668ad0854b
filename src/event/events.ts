import type { Message } from "../schema/message.ts"
import type { Part } from "../schema/part.ts"
import type { PermissionReply, PermissionRequest, ReplySource } from "../schema/permission.ts"
import type { QuestionAnswers, QuestionRequest } from "../schema/question.ts"
import type { Session } from "../schema/session.ts"
import type { Todo } from "../schema/todo.ts"

/** Totals of one prompt. `cost` is in US dollars. */
export interface Usage {
  input: number
  output: number
  reasoning: number
  cacheRead: number
  cacheWrite: number
  cost: number
}

/** A call that did not run because it was refused. */
export interface Refusal {
  tool: string
  callID: string
  permission: string
  patterns: string[]
  by: "user" | "rule" | "plugin" | "no-terminal" | "auto"
  reason: string
}

/** How a run ended. `limit`: steps, tokens, cost, time, or the third refused loop. Refused calls do not fail a run. */
export type RunStatus = "completed" | "failed" | "limit" | "interrupted"

interface Payloads {
  "session.created": { session: Session }
  "session.updated": { session: Session }
  "session.error": { error: { name: string; message: string; status?: number } }
  "message.created": { message: Message }
  "message.updated": { message: Message }
  /** The whole part, when it is created and at every state change. */
  "part.updated": { part: Part }
  /** A retried step removes the parts of the failed attempt. */
  "part.removed": { messageID: string; partID: string }
  /** Text appended to `field` of a part: `text`, or `raw` of a tool call. Sent at most 30 times per second. */
  "part.delta": { partID: string; field: "text" | "raw"; delta: string }
  "permission.asked": { request: PermissionRequest }
  "permission.replied": {
    requestID: string
    reply: PermissionReply["reply"]
    source: ReplySource
    message?: string
  }
  "question.asked": { request: QuestionRequest }
  "question.replied": { requestID: string; answers: QuestionAnswers }
  /** The user dismissed it, or the run ended. */
  "question.rejected": { requestID: string }
  "todo.updated": { todos: Todo[] }
  /** The history uses most of the context that is available for it. Both in tokens. Sent once until it shrinks. */
  "context.filling": { used: number; room: number }
  "run.completed": {
    status: RunStatus
    exitCode: number
    text: string
    usage: Usage
    refused: Refusal[]
    durationMs: number
  }
}

/** The name of an event, noun first: `part.updated`. */
export type EventType = keyof Payloads

/** An event before the bus adds the time. */
export type EventInput = { [T in EventType]: { type: T; sessionID: string } & Payloads[T] }[EventType]

/** An event as delivered. `time` is in milliseconds since the epoch. Changes are committed before their event. */
export type TackleEvent = {
  [T in EventType]: { type: T; time: number; sessionID: string } & Payloads[T]
}[EventType]

/** The event of one type. */
export type EventOf<T extends EventType> = Extract<TackleEvent, { type: T }>

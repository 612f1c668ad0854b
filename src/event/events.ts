import type { Message } from "../schema/message.ts"
import type { Part } from "../schema/part.ts"
import type { PermissionReply, PermissionRequest, ReplySource } from "../schema/permission.ts"
import type { QuestionAnswers, QuestionRequest } from "../schema/question.ts"
import type { Session } from "../schema/session.ts"
import type { Todo } from "../schema/todo.ts"

/** Sums over one prompt. `cost` in US dollars. */
export interface Usage {
  input: number
  output: number
  reasoning: number
  cacheRead: number
  cacheWrite: number
  cost: number
}

/** A call that did not run because a person, a rule or the lack of a terminal said no. */
export interface Refusal {
  tool: string
  callID: string
  permission: string
  patterns: string[]
  by: "person" | "rule" | "plugin" | "no-terminal" | "auto"
  reason: string
}

/** `limit`: steps, tokens, cost, time, or the third refused loop. `refused` calls do not make a run fail. */
export type RunStatus = "completed" | "failed" | "limit" | "interrupted"

interface Payloads {
  "session.created": { session: Session }
  "session.updated": { session: Session }
  "session.error": { error: { name: string; message: string; status?: number } }
  "message.created": { message: Message }
  "message.updated": { message: Message }
  /** The whole part, at its creation and every change of state. */
  "part.updated": { part: Part }
  /** A step that is tried again takes back the parts of the failed attempt. */
  "part.removed": { messageID: string; partID: string }
  /** Text that was added to `field` of a part: `text`, or `raw` of a tool call. Joined up to thirty times a second. */
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
  /** The person dismissed it, or the run ended. */
  "question.rejected": { requestID: string }
  "todo.updated": { todos: Todo[] }
  /** The history takes most of the room that the model's context has for it. Both in tokens. Once, until it is shorter. */
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

/** What a caller publishes: the bus adds the time. */
export type EventInput = { [T in EventType]: { type: T; sessionID: string } & Payloads[T] }[EventType]

/** What subscribers get. `time` in milliseconds since the epoch. Nothing is announced before it is committed. */
export type TackleEvent = {
  [T in EventType]: { type: T; time: number; sessionID: string } & Payloads[T]
}[EventType]

/** The event of one type. */
export type EventOf<T extends EventType> = Extract<TackleEvent, { type: T }>

import type { Input } from "../schema/input.ts"
import type { Message } from "../schema/message.ts"
import type { Part } from "../schema/part.ts"
import type { PermissionReply, PermissionRequest, ReplySource } from "../schema/permission.ts"
import type { QuestionAnswers, QuestionRequest } from "../schema/question.ts"
import type { Session } from "../schema/session.ts"
import type { Todo } from "../schema/todo.ts"

/** Total number of tokens by kind, and total cost in US dollars. */
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
  by: "user" | "rule" | "plugin" | "no-terminal" | "client" | "auto"
  /** Rules that would allow the call, in the format of `--allow`. Empty or undefined if no such rules are known. */
  rules?: string[]
  reason: string
}

/**
 * The status of a run that ended. `incomplete` means that the model's last answer ended early or was empty. `limit` means
 * that the run reached its step, token, cost or time limit, or that three repeated calls were refused. A refused call
 * does not make a run fail.
 */
export type RunStatus = "completed" | "incomplete" | "failed" | "limit" | "interrupted"

interface Payloads {
  "session.created": { session: Session }
  "session.updated": { session: Session }
  /** A session's last event. Sent by the engine that deletes the session. */
  "session.deleted": { session: Session }
  "session.error": { error: { name: string; message: string; status?: number } }
  "message.created": { message: Message }
  "message.updated": { message: Message }
  /**
   * Contains the whole part. Sent when the part is created and at every state change. A client that connects also
   * receives each part that is being streamed, with its text so far and without `seq`.
   */
  "part.updated": { part: Part }
  /** Sent when a step is retried, for each part of the failed attempt. */
  "part.removed": { messageID: string; partID: string }
  /** Text appended to `field` of a part: `text`, or `raw` of a tool call. Sent at most 40 times per second. */
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
  /** Sent when the user dismisses the question, or when the call that asked it ends without an answer. */
  "question.rejected": { requestID: string }
  "todo.updated": { todos: Todo[] }
  /** Contains the whole input. Sent when the input is accepted and at every change. */
  "input.updated": { input: Input }
  /**
   * Sent once when the history fills most of the available context, and again only after the history has been
   * shortened. `used` is the size of the history and `room` the available context, both in tokens.
   */
  "context.filling": { used: number; room: number }
  "run.completed": {
    status: RunStatus
    exitCode: number
    text: string
    /** Ids of the messages with the role `user` that the run added, oldest first. Empty if the run could not start. */
    messageIDs: string[]
    usage: Usage
    refused: Refusal[]
    /** Duration in ms, excluding the time spent waiting for the user. */
    durationMs: number
  }
}

/** The name of an event, such as `part.updated`. The noun comes first. */
export type EventType = keyof Payloads

/** An event before the bus adds the time. */
export type EventInput = {
  [T in EventType]: { type: T; sessionID: string; seq?: number } & Payloads[T]
}[EventType]

/**
 * An event that the bus delivers. `time` is in milliseconds since the epoch. A change is committed before its event is
 * published. `seq` is the number of the stored change in its session: see `Store.commit`. A client that reconnects does
 * not receive the events without `seq` that it missed, but receives each part that is being streamed, with its text so
 * far.
 */
export type TackleEvent = {
  [T in EventType]: { type: T; time: number; sessionID: string; seq?: number } & Payloads[T]
}[EventType]

/** An event of type `T`. */
export type EventOf<T extends EventType> = Extract<TackleEvent, { type: T }>

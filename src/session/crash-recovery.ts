import { isStreaming } from "../event/part-delta.ts"
import type { FileStamp, FileTracker } from "../files/file-tracker.ts"
import type { AssistantMessage, Message, MessageWithParts } from "../schema/message.ts"
import type { Part, ReasoningPart, TextPart, ToolPart } from "../schema/part.ts"
import type { Session } from "../schema/session.ts"
import { describeEffect, fail } from "../schema/tool-moves.ts"
import type { Store } from "../store/store.ts"
import { isRecord } from "../util/json.ts"
import { currentTime } from "../util/time.ts"

/**
 * Closes the calls, texts and messages that were open when an earlier process ended. Modifies the history and returns
 * the changed messages and parts. Marks a pending call as never started. Marks a running call as without effect only if
 * it was stored as harmless.
 */
export function settleInterrupted(
  history: readonly MessageWithParts[],
  reason: OpenReason = processEnded,
): {
  messages: AssistantMessage[]
  parts: Part[]
} {
  const now = currentTime()
  return {
    messages: history.flatMap(({ message }) =>
      isOpenAnswer(message) ? [interrupt(message, reason, now)] : [],
    ),
    parts: history.flatMap(({ parts }) => parts.filter(isOpen).map((part) => settle(part, reason, now))),
  }
}

/** Why messages and calls are closed, for the user and the model. */
export interface OpenReason {
  answer: string
  pending: string
  /** The sentence before the description of the call's effect. */
  running: string
}

const processEnded: OpenReason = {
  answer: "The process ended before this answer was complete.",
  pending: "This call never started, because the process ended before it could start.",
  running: "The process ended while this call was running.",
}

/** The reason in a copy of a session that is running. */
export const copiedEarly: OpenReason = {
  answer: "This session was copied before the answer was complete.",
  pending: "This call never started in this session, which was copied before the call started.",
  running: "This session was copied while the call was running.",
}

/**
 * Closes open calls, texts and messages in the sessions that engines were using when their processes were killed,
 * including sessions of subagents. Returns the sessions with an unfinished undo or redo.
 */
export function settleKilled(store: Store): Promise<Session[]> {
  return store.recover((history) => {
    const { messages, parts } = settleInterrupted(history)
    return [
      ...messages.map((message) => ({ kind: "message", message }) as const),
      ...parts.map((part) => ({ kind: "part", part }) as const),
    ]
  })
}

/**
 * Fills the file tracker with the files that earlier calls read and wrote, so that the model does not have to read them
 * again in a continued session. A summary can contain the list of these files.
 */
export function restoreLedger(history: readonly MessageWithParts[], ledger: FileTracker): void {
  for (const { parts } of history) {
    for (const part of parts) {
      if (part.type === "compaction")
        for (const { path, stamp } of part.seen ?? []) ledger.record(path, stamp)
      if (part.type !== "tool" || part.state.status !== "completed") continue
      const { file, files } = part.state.metadata
      for (const entry of [file, ...(Array.isArray(files) ? files : [])])
        if (isRecord(entry) && typeof entry.path === "string" && isStamp(entry.stamp))
          ledger.record(entry.path, entry.stamp)
    }
  }
}

/**
 * Returns true if a run must continue after the last message: the model has not answered, its answer contains calls, or
 * its answer was interrupted. Assumes that the process of the run has ended, because the history of a run that reached
 * a limit can look the same.
 */
export function isUnfinished(history: readonly MessageWithParts[]): boolean {
  const last = history.at(-1)
  if (!last) return false
  if (last.message.role === "user") return true
  if (last.message.error) return last.message.error.name === "aborted"
  return last.parts.some(({ type }) => type === "tool")
}

/** A part that a process was streaming or executing when it ended. */
type OpenPart = TextPart | ReasoningPart | ToolPart

function isOpen(part: Part): part is OpenPart {
  return isStreaming(part) || (part.type === "tool" && part.state.status === "running")
}

function isOpenAnswer(message: Message): message is AssistantMessage {
  return message.role === "assistant" && message.time.completed === undefined
}

function interrupt(message: AssistantMessage, { answer }: OpenReason, at: number): AssistantMessage {
  message.time = { ...message.time, completed: Math.max(message.time.created, at) }
  message.error = { name: "aborted", message: answer }
  return message
}

function settle(part: OpenPart, { pending, running }: OpenReason, at: number): OpenPart {
  if (part.type !== "tool") {
    const start = part.time?.start ?? at
    part.time = { start, end: Math.max(start, at) }
    return part
  }
  const { state } = part
  if (state.status === "pending") {
    part.state = fail(state, { error: pending, metadata: { kind: "interrupted" } }, at)
  } else if (state.status === "running") {
    const error = `${running} ${describeEffect(state)}`
    part.state = fail(state, { error, metadata: { kind: "interrupted" } }, at)
  }
  return part
}

function isStamp(value: unknown): value is FileStamp {
  return isRecord(value) && typeof value.size === "number" && typeof value.mtimeMs === "number"
}

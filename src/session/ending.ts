import type { Bus } from "../event/bus.ts"
import type { EventInput, Refusal, RunStatus } from "../event/events.ts"
import type { AssistantMessage, MessageWithParts, UserMessage } from "../schema/message.ts"
import type { Spent } from "../schema/spending.ts"
import { StoreError } from "../store/store.ts"
import { AbortedError, TimeoutError } from "../util/abort.ts"
import { errorMessage, UsageError } from "../util/errors.ts"
import { addUsage, sumUsage } from "./budget.ts"
import type { LoopResult } from "./loop.ts"

/** A run's last event, before the bus adds its time. */
export type Ending = Extract<EventInput, { type: "run.completed" }>

/**
 * Publishes the error of a run that failed or reached a limit, and returns the run's last event. `past` is the history.
 * `first` is the first message of the run. `spent` is the usage of summaries and MCP servers. `answer` is the
 * structured answer, if one was required.
 */
export function conclude(
  { bus, sessionID, workMs }: EndingContext,
  result: LoopResult,
  {
    past,
    first,
    spent,
    answer,
  }: { past: readonly MessageWithParts[]; first: UserMessage; spent: Spent[]; answer: string | undefined },
): Ending {
  const { status, error, turn, messages } = result
  if (error && status !== "interrupted") {
    const { name, message, status: httpStatus } = error
    bus.publish({
      type: "session.error",
      sessionID,
      error: { name, message, status: httpStatus },
    })
  }
  return {
    type: "run.completed",
    sessionID,
    status,
    exitCode: exitCodeOf(result),
    text: answer ?? answerText(past, messages),
    messageIDs: past.flatMap(({ message: { role, id } }) => (role === "user" && id >= first.id ? [id] : [])),
    usage: sumUsage([...messages, ...spent]),
    refused: turn.refused,
    durationMs: workMs(),
  }
}

/**
 * Publishes the error of a run that could not start or could not store its steps, unless the run was interrupted.
 * Returns the run's last event.
 */
export function concludeBroken({ bus, sessionID, workMs }: EndingContext, error: unknown): Ending {
  const status = brokenStatus(error)
  if (status !== "interrupted") {
    bus.publish({
      type: "session.error",
      sessionID,
      error: { name: StoreError.isThrown(error) ? error.code : "unknown", message: errorMessage(error) },
    })
  }
  return {
    type: "run.completed",
    sessionID,
    status,
    exitCode: error instanceof UsageError ? 2 : exitCodes[status],
    text: "",
    messageIDs: [],
    usage: sumUsage([]),
    refused: [],
    durationMs: workMs(),
  }
}

/** The run that ends. `workMs` returns its time so far, excluding the time spent waiting for the user. */
export interface EndingContext {
  bus: Bus
  sessionID: string
  workMs(): number
}

/**
 * Adds the usage and refusals of subagents to the last event. Also adds the refusals that occurred before the first
 * step.
 */
export function withOthers(end: Ending, children: readonly Ending[], before: readonly Refusal[]): Ending {
  if (children.length + before.length === 0) return end
  const refused = [...before, ...end.refused, ...children.flatMap((child) => child.refused)]
  return {
    ...end,
    usage: addUsage([end, ...children].map(({ usage }) => usage)),
    refused,
    exitCode: end.status === "completed" && refused.length > 0 ? refusedCode : end.exitCode,
  }
}

/**
 * Returns the exit code: 0 for a completed run, 1 for a failed run, 3 for a completed run with refused calls and for an
 * incomplete answer, 4 for a run that reached a limit, and 130 for an interrupted run.
 */
function exitCodeOf({ status, turn }: LoopResult): number {
  return status === "completed" && turn.refused.length > 0 ? refusedCode : exitCodes[status]
}

const refusedCode = 3

const exitCodes: Record<RunStatus, number> = {
  completed: 0,
  failed: 1,
  incomplete: 3,
  limit: 4,
  interrupted: 130,
}

/** Returns the status of a run that ended with an error that its loop does not handle. */
function brokenStatus(error: unknown): RunStatus {
  if (error instanceof AbortedError) return "interrupted"
  return error instanceof TimeoutError ? "limit" : "failed"
}

/** Returns the text of the last message. If the message continues an answer that was cut off, returns both texts. */
function answerText(history: readonly MessageWithParts[], messages: readonly AssistantMessage[]): string {
  const entries = messages.flatMap(({ id }) => history.findLast(({ message }) => message.id === id) ?? [])
  const start = entries.findLastIndex((_, index) => !isCutOff(entries[index - 1]))
  return entries.slice(start).map(textOf).join("")
}

function isCutOff(entry: MessageWithParts | undefined): boolean {
  if (entry?.message.role !== "assistant" || entry.message.finish !== "length") return false
  return !entry.parts.some(({ type }) => type === "tool")
}

function textOf({ parts }: MessageWithParts): string {
  return parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n")
}

import type { TackleEvent } from "../../event/events.ts"
import type { Part } from "../../schema/part.ts"
import { workMs } from "../../schema/tool-state.ts"
import type { Log } from "../../util/log.ts"

/**
 * Returns a subscriber that logs steps, calls, requests, retries and the end of a run, with times and sizes. Does not
 * log texts, commands and file contents, because these may contain secrets, and the session already contains them.
 */
export function eventLogger(log: Log): (event: TackleEvent) => void {
  return (event) => {
    const session = event.sessionID
    switch (event.type) {
      case "message.created":
        if (event.message.role === "user")
          log.write("info", "run started", { session, ...about(event.message) })
        return
      case "part.updated":
        return notePart(log, event.part)
      case "permission.asked": {
        const { id: request, permission, tool } = event.request
        return log.write("info", "asked", { session, request, permission, call: tool?.callID })
      }
      case "permission.replied": {
        const { requestID: request, reply, source } = event
        return log.write("info", "answered", { session, request, reply, by: source })
      }
      case "session.error":
        return log.write("error", "run failed", { session, error: event.error })
      case "run.completed": {
        const { status, exitCode, durationMs, usage, refused } = event
        const fields = { session, status, exitCode, durationMs, usage, refused: refused.length }
        return log.write("info", "run ended", fields)
      }
    }
  }
}

function about({ agent, model }: { agent: string; model?: unknown }) {
  return { agent, model }
}

function notePart(log: Log, part: Part): void {
  const session = part.sessionID
  if (part.type === "step-finish") {
    const { reason, tokens, cost } = part
    log.write("info", "step", { session, answer: part.messageID, reason, tokens, cost })
  } else if (part.type === "retry") {
    const { attempt, error, delayMs } = part
    log.write("warn", "retry", { session, attempt, error, delayMs })
  } else if (part.type === "tool" && (part.state.status === "completed" || part.state.status === "error")) {
    const { callID: call, tool, state } = part
    const { status, time, metadata } = state
    log.write("info", "call", {
      session,
      call,
      tool,
      status,
      kind: metadata?.kind,
      durationMs: workMs(time),
    })
  }
}

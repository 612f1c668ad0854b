import type { EventOf } from "../../event/events.ts"
import type { RetryPart } from "../../schema/part.ts"
import { allowHint } from "./allow-hint.ts"
import { usageWords } from "./usage.ts"

/** That a request to the model is made again. */
export function retryText({ attempt, delayMs, error }: RetryPart): string {
  return `↻ attempt ${attempt} failed, trying again in ${Math.ceil(delayMs / 1000)} s: ${error}`
}

/** That the model's context will soon be full. */
export function fillingText({ used, room }: EventOf<"context.filling">): string {
  const share = `${Math.round((used / room) * 100)} % of the model's context is used (${used} of ${room} tokens)`
  return `! ${share}: older parts will be replaced by a summary when it is full`
}

/** How a run ended, what it took, and how to go on. An end without a word is told: it looks like a fault of ours. */
export function summary(event: EventOf<"run.completed">): string[] {
  const { status, text, usage, refused, durationMs, sessionID } = event
  const words = [
    { completed: "done", failed: "failed", limit: "stopped by a limit", interrupted: "interrupted" }[status],
    `${(durationMs / 1000).toFixed(1)} s`,
    ...usageWords(usage),
    ...(refused.length > 0 ? [`${refused.length} refused`] : []),
  ]
  const hint = allowHint(refused.filter(({ by }) => by === "no-terminal"))
  return [
    ...(status === "completed" && text.trim() === "" ? ["the model ended without an answer"] : []),
    words.join(" · "),
    ...(hint === undefined ? [] : [hint]),
    `go on with: tackle run -s ${sessionID} "…"`,
  ]
}

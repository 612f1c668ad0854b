import type { AssistantMessage, MessageError } from "../schema/message.ts"
import type { Part } from "../schema/part.ts"

/**
 * The verdict on a step. With `met`, the run is complete. With `open`, the run continues. With `retry`, the model
 * receives `message`, and the user sees `notice`. With `failed`, the run ends with the error.
 */
export type Verdict =
  | { kind: "met" | "open" }
  | { kind: "retry"; message: string; notice?: string }
  | { kind: "failed"; error: MessageError }

/** Decides after each step whether the model has answered. */
export interface AnswerCheck {
  /** Returns the verdict on a step. Must be called after each step. */
  check(step: { message: AssistantMessage; parts: readonly Part[] }): Verdict
}

/**
 * Creates the check for an answer in text. An answer that reached the output limit is continued once, and an empty
 * answer is requested again once. After a step with calls, both are possible again. Any other answer that ended early
 * fails with the error `incomplete`.
 */
export function createAnswerCheck(): AnswerCheck {
  let retried = new Set<"length" | "empty">()

  return {
    check({ message, parts }) {
      if (parts.some(({ type }) => type === "tool")) {
        retried = new Set()
        return { kind: "open" }
      }
      const isEmpty = !parts.some((part) => part.type === "text" && part.text.trim() !== "")
      const early = earlyEnd(message)
      const problem = early ?? (isEmpty ? "The answer contains no text." : undefined)
      if (problem === undefined) return { kind: "met" }
      const retry = message.finish === "length" ? "length" : isEmpty ? "empty" : undefined
      if (retry === undefined || message.finish === "content-filter" || retried.has(retry))
        return { kind: "failed", error: { name: "incomplete", message: problem } }
      retried.add(retry)
      return { kind: "retry", ...retries[retry](problem) }
    },
  }
}

const retries = {
  length: (problem: string) => ({
    notice: `${problem} The model is asked to continue.`,
    message:
      "Your answer was cut off because it reached the output limit. Continue with the next character, including a space or line break if the text needs one. Do not repeat or introduce anything.",
  }),
  empty: (problem: string) => ({
    notice: `${problem} The model is asked again.`,
    message:
      "Your answer contained no text and no tool call. Continue with the task, or answer the user with text.",
  }),
}

/** Returns a sentence that says why the answer ended early, or undefined if it ended normally. */
function earlyEnd({ finish, rawFinish }: AssistantMessage): string | undefined {
  const raw = rawFinish === undefined ? "" : ` (${rawFinish})`
  switch (finish) {
    case "length":
      return `The answer ended early because it reached the model's output limit${raw}.`
    case "content-filter":
      return `The answer ended early because of the provider's content filter${raw}.`
    case "error":
      return `The answer ended early because of an error on the server${raw}.`
    case "other":
      return rawFinish === undefined ? undefined : `The server ended the answer early${raw}.`
    default:
      return undefined
  }
}

import type { LanguageModelV4FinishReason } from "@ai-sdk/provider"
import type { FinishReason } from "../schema/part.ts"

/** The server's words for an answer that ended normally, apart from those that the provider packages know. */
const normal =
  /^(?:stop|stopped|stop_sequence|end|ended|end_turn|end_of_(?:turn|text|stream|sequence)|eos|eos_token|eot|eot_id|done|complete|completed|finish|finished|success|none|null|)$/

/** The server's words for other reasons. The first pattern that matches applies. */
const patterns: readonly [FinishReason, RegExp][] = [
  ["stop", normal],
  ["tool-calls", /^(?:tool|function)_?(?:use|calls?)$/],
  ["content-filter", /filter|safety|refus|recitation|sensitive|block|prohibit|spii|moderat|policy|guardrail/],
  ["length", /length|max|limit|window|context|budget|truncat/],
  [
    "error",
    /error|fail|malformed|invalid|unexpected|abort|cancel|interrupt|timeout|time_out|resource|overload/,
  ],
]

/**
 * Returns the reason why an answer ended, and the server's word for it if the answer ended early. Most provider packages
 * report the reasons that they do not know as `other`. Such a reason is recognized by the server's word.
 */
export function readFinishReason(given: LanguageModelV4FinishReason): { reason: FinishReason; raw?: string } {
  const reason = recognize(given)
  return given.raw !== undefined && endedEarly(reason) ? { reason, raw: given.raw } : { reason }
}

function recognize({ unified, raw }: LanguageModelV4FinishReason): FinishReason {
  if (unified === "interrupted") return "error"
  if (unified !== "other" || raw === undefined) return unified
  const word = raw
    .trim()
    .toLowerCase()
    .replaceAll(/[\s-]+/g, "_")
  return patterns.find(([, pattern]) => pattern.test(word))?.[0] ?? "other"
}

/** Returns true if an answer with this reason may be cut off, even inside a call. */
export function endedEarly(reason: FinishReason | undefined): boolean {
  return reason === "length" || reason === "content-filter" || reason === "error" || reason === "other"
}

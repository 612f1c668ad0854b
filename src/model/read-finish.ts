import type { LanguageModelV4FinishReason, LanguageModelV4Usage } from "@ai-sdk/provider"
import type { FinishReason, Tokens } from "../schema/part.ts"

/** Why the answer ended, in our words. */
export function readReason({ unified }: LanguageModelV4FinishReason): FinishReason {
  return unified === "interrupted" ? "error" : unified
}

/** Tokens without those of the cache in `input`, and without thoughts in `output`. What is not told counts as 0. */
export function readTokens({ inputTokens, outputTokens }: LanguageModelV4Usage): Tokens {
  const read = inputTokens.cacheRead ?? 0
  const write = inputTokens.cacheWrite ?? 0
  const reasoning = outputTokens.reasoning ?? 0
  return {
    input: inputTokens.noCache ?? Math.max(0, (inputTokens.total ?? 0) - read - write),
    output: outputTokens.text ?? Math.max(0, (outputTokens.total ?? 0) - reasoning),
    reasoning,
    cache: { read, write },
  }
}

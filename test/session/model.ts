import type { LanguageModelV4StreamPart } from "@ai-sdk/provider"
import type { LanguageModel } from "../../src/model/model.ts"

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
}

/** A model of the AI SDK that plays back stream parts, one list per step. Adds `finish`. */
export function playback(steps: readonly (readonly LanguageModelV4StreamPart[])[]): LanguageModel {
  let step = 0
  return {
    specificationVersion: "v4",
    provider: "played",
    modelId: "back",
    supportedUrls: {},
    async doGenerate() {
      throw new Error("The engine streams.")
    },
    async doStream() {
      const parts = steps[step++] ?? []
      const unified = parts.some(({ type }) => type === "tool-call") ? "tool-calls" : "stop"
      const finish = { type: "finish", usage, finishReason: { unified, raw: unified } } as const
      return { stream: ReadableStream.from<LanguageModelV4StreamPart>([...parts, finish]) }
    },
  }
}

/** A text answer. */
export function words(text: string): LanguageModelV4StreamPart[] {
  return [
    { type: "text-start", id: "t" },
    { type: "text-delta", id: "t", delta: text },
    { type: "text-end", id: "t" },
  ]
}

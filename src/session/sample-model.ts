import type { Model, ModelPrompt } from "../model/model.ts"
import { type StreamLimits, streamStep } from "../model/stream.ts"
import type { SampleRequest, SampleResult } from "../tool/context.ts"
import type { CompactionResult } from "./compact.ts"
import { costOf } from "./cost.ts"

/**
 * One answer of the model to a conversation that is not the session's: no tools, nothing stored. What it took is added to
 * `spent`. Throws as `streamStep` does.
 */
export async function sampleModel(
  { system, messages, maxOutputTokens, temperature, signal }: SampleRequest,
  model: Model,
  { limits, spent }: { limits: StreamLimits; spent: CompactionResult["spent"] },
): Promise<SampleResult> {
  const prompt: ModelPrompt = [
    ...(system === undefined ? [] : [{ role: "system" as const, content: system }]),
    ...messages.map(({ role, text }) => ({ role, content: [{ type: "text" as const, text }] })),
  ]
  const result: SampleResult = { text: "", model: model.info.ref.modelID, cut: false }
  const answer = streamStep({
    language: await model.language(),
    info: model.info,
    prompt,
    tools: [],
    maxOutputTokens,
    ...(temperature === undefined ? {} : { temperature }),
    signal,
    limits,
  })
  for await (const event of answer) {
    if (event.type === "text-delta") result.text += event.delta
    if (event.type !== "finish") continue
    result.cut = event.reason === "length"
    spent.push({ tokens: event.tokens, cost: costOf(event.tokens, model.info.cost) })
  }
  return result
}

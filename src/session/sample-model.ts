import type { Model, ModelPrompt } from "../model/model.ts"
import { type StreamLimits, streamStep } from "../model/stream.ts"
import type { Sample, SampleRequest, SampleResult } from "../tool/context.ts"
import { UsageError } from "../util/errors.ts"
import type { Budget } from "./budget.ts"
import { costOf } from "./cost.ts"

/** Characters that stand for a token, of texts that nobody has counted yet. */
const charactersPerToken = 4

/** The model of the run beside which it is asked, and what the run has left. */
export interface SamplerOptions {
  model: Model
  limits: StreamLimits
  /** What the run may still use. */
  rest(): Pick<Budget, "maxTokens" | "maxCost">
  /** Hears of every answer what it took. */
  onSpent(spent: NonNullable<SampleResult["spent"]>): void
}

/**
 * Asks the model beside the session, one answer after the other: no tools, nothing stored. An answer gets no longer than
 * what the run may still use. Throws `UsageError` where that is nothing, and as `streamStep` does.
 */
export function createSampler(options: SamplerOptions): Sample {
  let last: Promise<unknown> = Promise.resolve()
  return (request) => {
    // In turn, so that what one takes counts for the next.
    const answer = last.then(() => sampleModel(request, options))
    last = answer.catch(() => {})
    return answer
  }
}

async function sampleModel(
  request: SampleRequest,
  { model, limits, rest, onSpent }: SamplerOptions,
): Promise<SampleResult> {
  const { system, messages, temperature, signal } = request
  const maxOutputTokens = Math.min(request.maxOutputTokens, roomFor(request, model, rest()))
  if (maxOutputTokens < 1)
    throw new UsageError("The run has used up its limit of tokens or cost: the model is not asked any more.")
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
    const { tokens, reason } = event
    result.spent = { tokens, cost: costOf(tokens, model.info.cost) }
    result.cut = reason === "length"
    onSpent(result.spent)
  }
  return result
}

/** How many tokens the answer may have, after what the question is likely to take. */
function roomFor(
  { system = "", messages }: SampleRequest,
  { info: { cost } }: Model,
  {
    maxTokens = Number.POSITIVE_INFINITY,
    maxCost = Number.POSITIVE_INFINITY,
  }: ReturnType<SamplerOptions["rest"]>,
): number {
  const asked = messages.reduce((sum, { text }) => sum + text.length, system.length) / charactersPerToken
  const byTokens = maxTokens - asked
  if (!cost || maxCost === Number.POSITIVE_INFINITY) return Math.floor(byTokens)
  const left = maxCost - (asked * cost.input) / 1_000_000
  const byCost = cost.output > 0 ? (left * 1_000_000) / cost.output : left > 0 ? byTokens : 0
  return Math.floor(Math.min(byTokens, byCost))
}

import type { Model, ModelPrompt } from "../model/model.ts"
import { streamStep } from "../model/stream.ts"
import type { Sample, SampleRequest, SampleResult } from "../tool/context.ts"
import { UsageError } from "../util/errors.ts"
import { newId } from "../util/id.ts"
import { costOf } from "./budget.ts"
import type { SessionRun } from "./session-run.ts"

/** Estimated number of characters per token, for text whose tokens are not counted. */
const charactersPerToken = 4

/**
 * Creates a function that sends requests to the run's model outside the session, one at a time. The requests have no
 * tools and are not stored. The run's budget limits the answer. The function throws `UsageError` if the rest of the
 * budget is too small for the request, and otherwise the errors of `streamStep`.
 */
export function createSampler(run: SessionRun): Sample {
  let last: Promise<unknown> = Promise.resolve()
  return (request) => {
    // Sends one request at a time, so that each request knows the usage of the previous answers.
    const answer = last.then(() => sampleModel(request, run))
    last = answer.catch(() => {})
    return answer
  }
}

async function sampleModel(
  request: SampleRequest,
  { model, engine, session, spending }: SessionRun,
): Promise<SampleResult> {
  const { system, messages, temperature, signal } = request
  const maxOutputTokens = Math.min(request.maxOutputTokens, roomFor(request, model, spending.rest()))
  if (maxOutputTokens < 1)
    throw new UsageError(
      "The run's remaining token or cost limit is too small for this request, so the request was not sent to the model.",
    )
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
    temperature,
    signal,
    limits: engine.streamLimits,
  })
  for await (const event of answer) {
    if (event.type === "text-delta") result.text += event.delta
    if (event.type !== "finish") continue
    const { tokens, reason } = event
    result.spent = { tokens, cost: costOf(tokens, model.info.cost) }
    result.cut = reason === "length"
    spending.sampled(result.spent)
    await engine.tenants?.record(session, newId("msg"), result.spent)
  }
  return result
}

/** Returns the maximum number of tokens for the answer: the remaining budget minus an estimate for the request. */
function roomFor(
  { system = "", messages }: SampleRequest,
  { info: { cost } }: Model,
  {
    maxTokens = Number.POSITIVE_INFINITY,
    maxCost = Number.POSITIVE_INFINITY,
  }: ReturnType<SessionRun["spending"]["rest"]>,
): number {
  const asked = messages.reduce((sum, { text }) => sum + text.length, system.length) / charactersPerToken
  const byTokens = maxTokens - asked
  if (!cost || maxCost === Number.POSITIVE_INFINITY) return Math.floor(byTokens)
  const left = maxCost - (asked * cost.input) / 1_000_000
  const byCost = cost.output > 0 ? (left * 1_000_000) / cost.output : left > 0 ? byTokens : 0
  return Math.floor(Math.min(byTokens, byCost))
}

import { ProviderError } from "../model/errors.ts"
import { streamStep } from "../model/stream.ts"
import { throwIfAborted } from "../util/abort.ts"
import type { CompactionInput } from "./compact.ts"
import { costOf, noTokens, type Spent } from "./cost.ts"
import { hookSummary } from "./plugin-hooks.ts"
import { summaryPrompt } from "./summary-request.ts"

/** What the model wrote, trimmed, and what that took. */
export interface Summary extends Spent {
  text: string
}

/** Asks the model to sum up a record. Undefined where even that is too long for it. Throws what asking the model throws. */
export async function summarizeIfItFits(record: string, input: SummaryInput): Promise<Summary | undefined> {
  try {
    return await summarize(record, input)
  } catch (error) {
    if (error instanceof ProviderError && error.kind === "context-overflow") return undefined
    throw error
  }
}

async function summarize(record: string, input: SummaryInput): Promise<Summary> {
  const { session, model, limits, plugins, signal } = input
  throwIfAborted(signal)
  const system = await hookSummary(plugins, session.id, summaryPrompt, signal)
  const summary: Summary = { text: "", tokens: noTokens, cost: 0 }
  const events = streamStep({
    language: await model.language(),
    info: model.info,
    prompt: [
      { role: "system", content: system },
      { role: "user", content: [{ type: "text", text: record.toWellFormed() }] },
    ],
    tools: [],
    limits,
    signal,
  })
  for await (const event of events) {
    if (event.type === "text-delta") summary.text += event.delta
    if (event.type !== "finish") continue
    summary.tokens = event.tokens
    summary.cost = costOf(event.tokens, model.info.cost)
  }
  summary.text = summary.text.trim()
  return summary
}

type SummaryInput = Pick<CompactionInput, "session" | "model" | "limits" | "plugins" | "signal">

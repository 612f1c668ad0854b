import type { Usage } from "../event/events.ts"
import { modelName } from "../model/model.ts"
import type { MessageWithParts } from "../schema/message.ts"
import type { ToolPart } from "../schema/part.ts"
import type { Session } from "../schema/session.ts"
import { workMs } from "../schema/tool-state.ts"
import { isRecord } from "../util/json.ts"
import { addUsage, type Spent, sumUsage } from "./budget.ts"

/** What sessions used, by the records of their steps. */
export interface UsageStats {
  /** Subagents' among them. */
  sessions: number
  /** What persons asked for. */
  prompts: number
  usage: Usage
  /** The dearest first, then by their tokens. */
  models: ModelStats[]
  /** Under the names that the model wrote, the most called first. */
  tools: ToolStats[]
}

/** `steps`: answers of the model, also those to MCP servers, and summaries that it wrote. */
export interface ModelStats {
  model: string
  steps: number
  usage: Usage
}

/**
 * `failed` are those that ended with an error, refusals among them. `durationMs` of all together, without
 * the time that people took to answer.
 */
export interface ToolStats {
  tool: string
  calls: number
  failed: number
  durationMs: number
}

/** A sum that sessions are added to one by one, so that no more than one is in memory. */
export function createStats(): {
  add(session: Session, messages: readonly MessageWithParts[]): void
  result(): UsageStats
} {
  const models = new Map<string, Spent[]>()
  const tools = new Map<string, ToolStats>()
  let sessions = 0
  let prompts = 0

  function addStep(model: string, step: Spent): void {
    const steps = models.get(model) ?? []
    steps.push(step)
    models.set(model, steps)
  }

  function addCall({ tool, state }: ToolPart): void {
    if (state.status !== "completed" && state.status !== "error") return
    const known = tools.get(tool) ?? { tool, calls: 0, failed: 0, durationMs: 0 }
    known.calls += 1
    if (state.status === "error") known.failed += 1
    known.durationMs += workMs(state.time)
    tools.set(tool, known)
  }

  return {
    add(session, messages) {
      sessions += 1
      for (const { message, parts } of messages) {
        // The history that a fork began with was paid for in the session which it came from.
        if (message.time.created < session.time.created) continue
        const model = modelName(message.model)
        if (message.role === "assistant" && message.finish !== undefined)
          addStep(model, { tokens: message.tokens, cost: message.cost })
        if (message.role === "user" && session.parentID === undefined && isRequest(parts)) prompts += 1
        for (const part of parts) {
          if (part.type === "tool") addCall(part)
          if (part.type === "tool") for (const step of sampledIn(part)) addStep(model, step)
          if (part.type === "compaction" && part.tokens)
            addStep(model, { tokens: part.tokens, cost: part.cost ?? 0 })
        }
      }
    },
    result() {
      const byModel = [...models].map(([model, steps]) => ({
        model,
        steps: steps.length,
        usage: sumUsage(steps),
      }))
      return {
        sessions,
        prompts,
        usage: addUsage(byModel.map(({ usage }) => usage)),
        models: byModel.sort((a, b) => b.usage.cost - a.usage.cost || sizeOf(b.usage) - sizeOf(a.usage)),
        tools: [...tools.values()].sort((a, b) => b.calls - a.calls || (a.tool < b.tool ? -1 : 1)),
      }
    },
  }
}

/** What the model was asked within a call by an MCP server. */
function sampledIn({ state }: ToolPart): Spent[] {
  const { sampled } = (state.status !== "pending" && state.metadata) || {}
  return Array.isArray(sampled) ? sampled.filter(isSample) : []
}

/** By hand: the schema of parts takes longer to make than a sum to count. */
function isSample(value: unknown): value is Spent {
  if (!isRecord(value) || typeof value.cost !== "number" || !isRecord(value.tokens)) return false
  const { input, output, reasoning, cache } = value.tokens
  const counts = [input, output, reasoning, ...(isRecord(cache) ? [cache.read, cache.write] : [undefined])]
  return counts.every((count) => typeof count === "number")
}

/** True for a message in a person's own words, and not Tackle's. */
function isRequest(parts: MessageWithParts["parts"]): boolean {
  return parts.some((part) => part.type === "file" || (part.type === "text" && !part.synthetic))
}

function sizeOf({ input, output, reasoning, cacheRead, cacheWrite }: Usage): number {
  return input + output + reasoning + cacheRead + cacheWrite
}

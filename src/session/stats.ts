import type { Usage } from "../event/events.ts"
import { modelName } from "../model/model.ts"
import type { MessageWithParts } from "../schema/message.ts"
import type { ToolPart } from "../schema/part.ts"
import type { Session } from "../schema/session.ts"
import { type Spent, spentIn } from "../schema/spending.ts"
import { workMs } from "../schema/tool-state.ts"
import { addUsage, sumUsage } from "./budget.ts"

/** Usage of sessions, calculated from their stored steps. */
export interface UsageStats {
  /** Number of sessions, including sessions of subagents. */
  sessions: number
  /** Number of prompts by the user. */
  prompts: number
  usage: Usage
  /** Usage by model, sorted by cost and then by tokens, highest first. */
  models: ModelStats[]
  /** Usage by tool, sorted by number of calls, highest first. The names are as the model wrote them. */
  tools: ToolStats[]
}

/** Usage of one model. `steps` counts the model's answers, including answers to MCP servers and summaries. */
export interface ModelStats {
  model: string
  steps: number
  usage: Usage
}

/**
 * Usage of one tool. `failed` counts errors, including refusals. `durationMs` is the total time, excluding time spent
 * waiting for the user.
 */
export interface ToolStats {
  tool: string
  calls: number
  failed: number
  durationMs: number
}

/** Creates an accumulator for usage. Sessions are added one at a time, so that only one session is in memory. */
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
        // Skips the history that a fork copied from another session.
        if (message.time.created < session.time.created) continue
        const model = modelName(message.model)
        for (const step of spentIn({ message, parts })) addStep(model, step)
        if (message.role === "user" && session.parentID === undefined && isRequest(parts)) prompts += 1
        for (const part of parts) if (part.type === "tool") addCall(part)
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

/** Returns true for a message that the user wrote. */
function isRequest(parts: MessageWithParts["parts"]): boolean {
  return parts.some((part) => part.type === "file" || (part.type === "text" && !part.synthetic))
}

function sizeOf({ input, output, reasoning, cacheRead, cacheWrite }: Usage): number {
  return input + output + reasoning + cacheRead + cacheWrite
}

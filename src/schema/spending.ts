import { isRecord } from "../util/json.ts"
import type { MessageWithParts } from "./message.ts"
import type { Tokens } from "./part.ts"

/** Usage of one model request. `cost` is in US dollars. */
export interface Spent {
  tokens: Tokens
  cost: number
}

/**
 * Returns the model requests that a message records: its own, those of summaries, and those of MCP servers during its
 * calls. Does not include the requests of subagents, which their sessions record.
 */
export function spentIn({ message, parts }: MessageWithParts): Spent[] {
  const own = message.role === "assistant" && message.finish !== undefined ? [message] : []
  return [
    ...own.map(({ tokens, cost }) => ({ tokens, cost })),
    ...parts.flatMap((part) => {
      if (part.type === "compaction" && part.tokens) return [{ tokens: part.tokens, cost: part.cost ?? 0 }]
      if (part.type !== "tool" || part.state.status === "pending") return []
      const { sampled } = part.state.metadata ?? {}
      return Array.isArray(sampled) ? sampled.filter(isSpent) : []
    }),
  ]
}

/** Returns the cost of a message's requests, and of the subagents that its calls started. In US dollars. */
export function costIn(entry: MessageWithParts): number {
  const own = spentIn(entry).reduce((sum, { cost }) => sum + cost, 0)
  return entry.parts.reduce((sum, part) => {
    if (part.type !== "tool" || part.tool !== "task" || part.state.status === "pending") return sum
    const { usage } = part.state.metadata ?? {}
    return isRecord(usage) && typeof usage.cost === "number" ? sum + usage.cost : sum
  }, own)
}

/** Validates a value without a schema, because creating the schema takes longer than calculating the usage. */
function isSpent(value: unknown): value is Spent {
  if (!isRecord(value) || typeof value.cost !== "number" || !isRecord(value.tokens)) return false
  const { input, output, reasoning, cache } = value.tokens
  const counts = [input, output, reasoning, ...(isRecord(cache) ? [cache.read, cache.write] : [undefined])]
  return counts.every((count) => typeof count === "number")
}

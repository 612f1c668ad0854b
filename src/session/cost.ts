import type { Usage } from "../event/events.ts"
import type { ModelInfo } from "../model/model.ts"
import type { Tokens } from "../schema/part.ts"

/** What one request to a model took. In US dollars. */
export interface Spent {
  tokens: Tokens
  cost: number
}

/** US dollars for one step by the prices of the config, per million tokens; 0 where there are none. */
export function costOf(tokens: Tokens, prices: ModelInfo["cost"]): number {
  if (!prices) return 0
  const { input, output, reasoning, cache } = tokens
  const sum =
    input * prices.input +
    (output + reasoning) * prices.output +
    cache.read * (prices.cacheRead ?? prices.input) +
    cache.write * (prices.cacheWrite ?? prices.input)
  return sum / 1_000_000
}

/** Nothing used. */
export const noTokens: Tokens = { input: 0, output: 0, reasoning: 0, cache: { read: 0, write: 0 } }

/** The sum of several runs. */
export function addUsage(runs: readonly Usage[]): Usage {
  const sum = sumUsage([])
  for (const usage of runs) {
    for (const name of Object.keys(sum) as (keyof Usage)[]) sum[name] += usage[name]
  }
  return sum
}

/** The sum of several steps. */
export function sumUsage(steps: readonly Spent[]): Usage {
  const usage: Usage = { input: 0, output: 0, reasoning: 0, cacheRead: 0, cacheWrite: 0, cost: 0 }
  for (const { tokens, cost } of steps) {
    usage.input += tokens.input
    usage.output += tokens.output
    usage.reasoning += tokens.reasoning
    usage.cacheRead += tokens.cache.read
    usage.cacheWrite += tokens.cache.write
    usage.cost += cost
  }
  return usage
}

import type { Usage } from "../event/events.ts"

/**
 * Returns the tokens and the cost, such as `12000 + 340 tokens (11000 from the cache)` and `$0.0123`. The first token
 * count is the input, and the second is the output including reasoning. Omits the counts if both are zero, and the cost
 * if it is zero.
 */
export function usageWords({ input, output, reasoning, cacheRead, cacheWrite, cost }: Usage): string[] {
  const read = input + cacheRead + cacheWrite
  const written = output + reasoning
  const cached = cacheRead > 0 ? ` (${cacheRead} from the cache)` : ""
  return [
    ...(read + written > 0 ? [`${read} + ${written} tokens${cached}`] : []),
    ...(cost > 0 ? [dollars(cost)] : []),
  ]
}

/** Formats a cost, such as `$0.0123`. Costs below $0.0001 have two significant digits. */
function dollars(cost: number): string {
  if (cost >= 0.0001 || cost === 0) return `$${cost.toFixed(4)}`
  return `$${cost.toFixed(1 - Math.floor(Math.log10(cost)))}`
}

/** Formats a duration, such as `8 s` or `2 min 8 s`. */
export function durationText(ms: number): string {
  const seconds = Math.floor(ms / 1_000)
  const minutes = Math.floor(seconds / 60)
  return minutes === 0 ? `${seconds} s` : `${minutes} min ${seconds % 60} s`
}

/** Returns the middle value, or the mean of the two middle values. Throws for an empty list. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const upper = sorted[Math.floor(sorted.length / 2)]
  const lower = sorted[Math.ceil(sorted.length / 2) - 1]
  if (upper === undefined || lower === undefined)
    throw new RangeError("The median of an empty list is undefined.")
  return (lower + upper) / 2
}

/** Returns the smallest value that is not exceeded by the given share of the values. Throws for an empty list. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  const value = sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)]
  if (value === undefined) throw new RangeError("The percentile of an empty list is undefined.")
  return value
}

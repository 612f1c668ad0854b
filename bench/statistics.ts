/** Returns the middle value, or the mean of the two middle values. Throws for an empty list. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const upper = sorted[Math.floor(sorted.length / 2)]
  const lower = sorted[Math.ceil(sorted.length / 2) - 1]
  if (upper === undefined || lower === undefined)
    throw new RangeError("The median of an empty list is undefined.")
  return (lower + upper) / 2
}

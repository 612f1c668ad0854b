/**
 * Calls `work` for each item, at most `limit` at a time. Rejects with the first error and then makes no further
 * calls.
 */
export async function forEachConcurrently<T>(
  items: readonly T[],
  limit: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const waiting = items.values()
  let failed = false
  const workers = Array.from({ length: Math.min(limit, items.length) }, async () => {
    for (const item of waiting) {
      try {
        await work(item)
      } catch (error) {
        failed = true
        throw error
      }
      if (failed) return
    }
  })
  await Promise.all(workers)
}

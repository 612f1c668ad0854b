/**
 * Calls `work` for each item. At most `limit` calls run at the same time. After the first error, rejects with that
 * error and starts no further calls.
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

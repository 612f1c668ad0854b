import { stat } from "node:fs/promises"
import { systemCode } from "../../util/errors.ts"

/** Maximum number of parallel `stat` calls. */
const batchSize = 64

/**
 * Returns the `max` most recently modified files and the total number of files. Sorts files newest first, and files of
 * the same age by path.
 */
export async function newestFirst(
  paths: AsyncIterable<string>,
  max: number,
): Promise<{ paths: string[]; total: number }> {
  let kept: DatedPath[] = []
  let batch: string[] = []
  let total = 0

  async function take(): Promise<void> {
    kept = [...kept, ...(await Promise.all(batch.map(dated)))].sort(byAge).slice(0, max)
    batch = []
  }

  for await (const path of paths) {
    total += 1
    batch.push(path)
    if (batch.length >= batchSize) await take()
  }
  await take()
  return { paths: kept.map(({ path }) => path), total }
}

/** Sorts items by the modification time of their files, newest first. */
export async function sortNewestFirst<T extends { path: string }>(items: readonly T[]): Promise<T[]> {
  const pairs: { item: T; age: DatedPath }[] = []
  for (let start = 0; start < items.length; start += batchSize) {
    const batch = items.slice(start, start + batchSize)
    pairs.push(...(await Promise.all(batch.map(async (item) => ({ item, age: await dated(item.path) })))))
  }
  return pairs.sort((a, b) => byAge(a.age, b.age)).map(({ item }) => item)
}

interface DatedPath {
  path: string
  mtimeMs: number
}

/** Returns the path with its modification time. A deleted file counts as the oldest. */
async function dated(path: string): Promise<DatedPath> {
  try {
    return { path, mtimeMs: (await stat(path)).mtimeMs }
  } catch (error) {
    if (systemCode(error) === undefined) throw error
    return { path, mtimeMs: 0 }
  }
}

function byAge(a: DatedPath, b: DatedPath): number {
  return b.mtimeMs - a.mtimeMs || (a.path < b.path ? -1 : 1)
}

import { lstat, readdir, rm } from "node:fs/promises"
import { join } from "node:path"
import { unlessMissing } from "./file-system.ts"

/** Limits for a directory's content. */
export interface SweepLimits {
  /** Maximum time since the last write to an entry, in days. */
  days: number
  /** Maximum size of all entries, in bytes. The newest entry stays even if it exceeds the limit. */
  bytes?: number
}

/**
 * Removes the entries of a directory that exceed the age limit, and then the oldest entries until the size limit is
 * met. Removes directories with their contents. Keeps entries for which `spare` returns true. Ignores a missing
 * directory and entries that another process removes.
 */
export async function sweepDirectory(
  root: string,
  limits: SweepLimits,
  {
    spare = async () => false,
    now = Date.now(),
  }: { spare?: (name: string) => Promise<boolean>; now?: number } = {},
): Promise<void> {
  const { days, bytes = Number.POSITIVE_INFINITY } = limits
  const entries: (Extent & { name: string })[] = []
  for (const name of await namesIn(root)) entries.push({ name, ...(await extentOf(join(root, name))) })
  let used = 0
  for (const { name, size, writtenAt } of entries.sort((a, b) => b.writtenAt - a.writtenAt)) {
    const tooMuch = used > 0 && used + size > bytes
    used += size
    if (!tooMuch && now - writtenAt <= days * dayMs) continue
    if (!(await spare(name))) await rm(join(root, name), { recursive: true, force: true })
  }
}

/** A day in milliseconds. */
export const dayMs = 24 * 60 * 60 * 1000

interface Extent {
  /** Size in bytes. */
  size: number
  /** Time of the last write, in milliseconds since the epoch. */
  writtenAt: number
}

/** Returns the total size and the time of the latest write of a file or directory. Does not follow links. */
async function extentOf(path: string): Promise<Extent> {
  const found = await unlessMissing(lstat(path))
  if (!found) return { size: 0, writtenAt: 0 }
  let [size, writtenAt] = [found.size, found.mtimeMs]
  if (!found.isDirectory()) return { size, writtenAt }
  for (const name of await namesIn(path)) {
    const inner = await extentOf(join(path, name))
    size += inner.size
    writtenAt = Math.max(writtenAt, inner.writtenAt)
  }
  return { size, writtenAt }
}

async function namesIn(directory: string): Promise<string[]> {
  return (await unlessMissing(readdir(directory))) ?? []
}

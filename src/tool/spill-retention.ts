import { readdirSync, rmSync, statSync } from "node:fs"
import { join } from "node:path"
import { systemCode } from "../util/errors.ts"

/** Days that the full text of a cut output is kept, where the config says nothing else. */
export const defaultRetentionDays = 7

const dayMs = 24 * 60 * 60 * 1000

/**
 * Removes the spill directories of sessions in which nothing was written for so many days. `root` is
 * `<data>/truncate`; where it is missing there is nothing to do. What another process removes meanwhile is no fault.
 */
export function removeOldSpills(root: string, days: number, now = Date.now()): void {
  for (const session of entries(root)) {
    const directory = join(root, session)
    const newest = Math.max(
      ...[directory, ...entries(directory).map((name) => join(directory, name))].map(changedAt),
    )
    if (now - newest > days * dayMs) rmSync(directory, { recursive: true, force: true })
  }
}

function entries(directory: string): string[] {
  try {
    return readdirSync(directory)
  } catch (error) {
    if (isGone(error)) return []
    throw error
  }
}

function changedAt(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0
}

function isGone(error: unknown): boolean {
  return systemCode(error) === "ENOENT" || systemCode(error) === "ENOTDIR"
}

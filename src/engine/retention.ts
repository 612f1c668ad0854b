import { stat, utimes, writeFile } from "node:fs/promises"
import { join } from "node:path"
import type { ContentStore } from "../files/content-store.ts"
import { systemCode } from "../util/errors.ts"
import { dayMs, sweepDirectory } from "../util/sweep.ts"
import { dataPaths } from "./data-directory.ts"

/** How long and how much of the files beside the database is kept. Only the user deletes sessions. */
export interface RetentionLimits {
  /** Days since the last use. */
  days: number
  /** Limit for full outputs, and the same for copies of files. */
  megabytes: number
}

/** Half a gigabyte holds thousands of turns, and a week is enough to return to a task. */
export const defaultRetentionLimits: RetentionLimits = { days: 7, megabytes: 512 }

/** Keeps everything. */
export const noRetentionLimits: RetentionLimits = {
  days: Number.POSITIVE_INFINITY,
  megabytes: Number.POSITIVE_INFINITY,
}

/** The file whose modification time is the time of the last cleanup. */
const markName = "swept"

/** Targets of the cleanup, and the entries to keep. */
export interface RetentionOptions {
  dataDirectory: string
  limits: RetentionLimits
  /** Days for full outputs, if different. */
  outputDays?: number
  contents: Pick<ContentStore, "sweep">
  /** Returns true for a session that is in use or has jobs. Its outputs stay. */
  inUse(sessionID: string): Promise<boolean>
  /** Milliseconds since the epoch. Default: now. */
  now?: number
}

/**
 * Removes files that are too old or too many from the data directory, unless any process did so within a day. Creates
 * no directory. Rejects if a file cannot be removed.
 */
export async function cleanUp(options: RetentionOptions): Promise<void> {
  const { dataDirectory, limits, contents, inUse, now = Date.now() } = options
  // Marked before the work, so that only one of two processes does it.
  if (!(await markDue(join(dataDirectory, markName), now))) return
  const { days } = limits
  const places = dataPaths(dataDirectory)
  const outputs = { days: options.outputDays ?? days, bytes: limits.megabytes * 1024 * 1024 }
  await sweepDirectory(places.outputs, outputs, { spare: inUse, now })
  await contents.sweep(now)
  for (const folder of [places.programs, places.logs]) await sweepDirectory(folder, { days }, { now })
}

/** Updates the mark. Returns false if it is less than a day old, or if its directory does not exist. */
async function markDue(mark: string, now: number): Promise<boolean> {
  try {
    const { mtimeMs } = await stat(mark)
    if (Math.abs(now - mtimeMs) < dayMs) return false
  } catch (error) {
    if (systemCode(error) !== "ENOENT") throw error
  }
  try {
    await writeFile(mark, "", { mode: 0o600 })
    await utimes(mark, now / 1000, now / 1000)
    return true
  } catch (error) {
    if (systemCode(error) === "ENOENT") return false
    throw error
  }
}

import { stat, utimes, writeFile } from "node:fs/promises"
import { join } from "node:path"
import type { ContentStore } from "../store/content-store.ts"
import { systemCode } from "../util/errors.ts"
import { dayMs, sweepDirectory } from "../util/sweep.ts"
import { dataPaths } from "./data-directory.ts"

/** Age and size limits for the files next to the database. Sessions are never deleted automatically. */
export interface RetentionLimits {
  /** Maximum number of days since the last use. */
  days: number
  /** Size limit in megabytes for full outputs. The same limit applies separately to copies of files. */
  megabytes: number
}

/** Default limits. Half a gigabyte holds thousands of turns, and a week is enough to return to a task. */
export const defaultRetentionLimits: RetentionLimits = { days: 7, megabytes: 512 }

/** Limits that keep everything. */
export const noRetentionLimits: RetentionLimits = {
  days: Number.POSITIVE_INFINITY,
  megabytes: Number.POSITIVE_INFINITY,
}

/** Name of the file whose modification time is the time of the last cleanup. */
const markName = "swept"

/** Targets of the cleanup, and the entries to keep. */
export interface RetentionOptions {
  dataDirectory: string
  limits: RetentionLimits
  /** Number of days for full outputs. Default: the days of `limits`. */
  outputDays?: number
  contents: Pick<ContentStore, "sweep">
  /** Returns true for a session that is in use or has jobs. The outputs of such a session are kept. */
  inUse(sessionID: string): Promise<boolean>
  /** Current time in milliseconds since the epoch. Default: the system time. */
  now?: number
}

/**
 * Removes files from the data directory that exceed the age or size limit. Does nothing if any process has removed old
 * files within the last day. Creates no directory. Rejects if a file cannot be removed.
 */
export async function cleanUp(options: RetentionOptions): Promise<void> {
  const { dataDirectory, limits, contents, inUse, now = Date.now() } = options
  // Set the mark before the cleanup, so that only one of two processes runs it.
  if (!(await markDue(join(dataDirectory, markName), now))) return
  const { days } = limits
  const places = dataPaths(dataDirectory)
  const outputs = { days: options.outputDays ?? days, bytes: limits.megabytes * 1024 * 1024 }
  await sweepDirectory(places.outputs, outputs, { spare: inUse, now })
  await contents.sweep(now)
  for (const folder of [places.programs, places.logs]) await sweepDirectory(folder, { days }, { now })
}

/** Updates the mark. Returns false if the mark is less than a day old or its directory does not exist. */
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

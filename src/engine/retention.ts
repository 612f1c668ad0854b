import { stat, utimes, writeFile } from "node:fs/promises"
import { join } from "node:path"
import type { ContentStore } from "../files/content-store.ts"
import { systemCode } from "../util/errors.ts"
import { dayMs, sweepDirectory } from "../util/sweep.ts"
import { dataPaths } from "./data-directory.ts"

/** How long and how much of the files beside the database is kept. Sessions themselves are only removed by a person. */
export interface RetentionLimits {
  /** Days since their last use. */
  days: number
  /** For full outputs and for copies of files, each. */
  megabytes: number
}

/** Half a gigabyte holds thousands of turns; a week is enough to come back to a piece of work. */
export const defaultRetentionLimits: RetentionLimits = { days: 7, megabytes: 512 }

/** Nothing is removed. */
export const noRetentionLimits: RetentionLimits = {
  days: Number.POSITIVE_INFINITY,
  megabytes: Number.POSITIVE_INFINITY,
}

/** The file whose time says when was last cleaned up. */
const markName = "swept"

/** What is cleaned up, and what of it must stay. */
export interface RetentionOptions {
  dataDirectory: string
  limits: RetentionLimits
  /** Days for full outputs, where they are others. */
  outputDays?: number
  contents: Pick<ContentStore, "sweep">
  /** True for a session that somebody works on, or that has jobs: its outputs stay. */
  inUse(sessionID: string): Promise<boolean>
  /** In milliseconds since the epoch. Default: the time of the clock. */
  now?: number
}

/**
 * Removes what is too old or too much from the data directory, unless that was done within a day, by whatever process.
 * A directory that is not there stays so. Rejects with what the system says of a file that cannot be removed.
 */
export async function cleanUp(options: RetentionOptions): Promise<void> {
  const { dataDirectory, limits, contents, inUse, now = Date.now() } = options
  // First marked, then done: of two processes that start at once one does it.
  if (!(await markDue(join(dataDirectory, markName), now))) return
  const { days } = limits
  const places = dataPaths(dataDirectory)
  const outputs = { days: options.outputDays ?? days, bytes: limits.megabytes * 1024 * 1024 }
  await sweepDirectory(places.outputs, outputs, { spare: inUse, now })
  await contents.sweep(now)
  for (const folder of [places.programs, places.logs]) await sweepDirectory(folder, { days }, { now })
}

/** Puts the time of now on the mark. False: it is not a day old, or there is no directory for it. */
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

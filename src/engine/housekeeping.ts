import { lstat, readFile, readlink, stat, utimes, writeFile } from "node:fs/promises"
import { join } from "node:path"
import type { TemporaryFileJournal } from "../files/temporary-files.ts"
import type { PlaceholderJournal } from "../sandbox/placeholders.ts"
import type { Session } from "../schema/session.ts"
import { isAnyHeld } from "../session/lease.ts"
import { familyOf } from "../session/lineage.ts"
import { type ContentStore, hashOf } from "../store/content-store.ts"
import type { SessionFilter, Store } from "../store/store.ts"
import type { JobTable } from "../tools/bash/background-jobs.ts"
import { systemCode, UsageError } from "../util/errors.ts"
import type { ProcessJournal } from "../util/process-journal.ts"
import { dayMs, sweepDirectory } from "../util/sweep.ts"
import { dataPaths } from "./data-directory.ts"

/** Cleanup that runs in the background after the engine has opened. */
export interface Housekeeping {
  /** Resolves when the processes of killed runs have ended and the temporary files of these runs have been removed. */
  cleared: Promise<void>
  /** Resolves when all cleanup is done. */
  done(): Promise<void>
}

/** Targets of the cleanup, and the checks that determine which files must stay. */
export interface HousekeepingOptions {
  dataDirectory: string
  retention: RetentionLimits
  /** Number of days for which full outputs are kept. Default: the `days` of `retention`. */
  outputDays?: number
  store: Store
  contents: Pick<ContentStore, "fileBytes" | "get" | "put" | "sweep">
  processes: Pick<ProcessJournal, "endOrphans" | "isAtWork">
  temporaries: Pick<TemporaryFileJournal, "endOrphans">
  placeholders: Pick<PlaceholderJournal, "endOrphans">
  jobs: Pick<JobTable, "runsFor">
  onProblem(message: string, error: unknown): void
}

/**
 * Cleans up after killed runs and, at most once a day, removes old files. The promises do not reject. Problems go to
 * `onProblem`.
 */
export function startHousekeeping(options: HousekeepingOptions): Housekeeping {
  const { store, contents, processes, jobs, onProblem } = options
  const cleared = Promise.all([
    // End processes first: a command that still runs needs the placeholders that protect its project.
    processes.endOrphans().then(options.placeholders.endOrphans),
    options.temporaries.endOrphans(isKept),
  ]).then(
    () => {},
    (error: unknown) => onProblem("could not clean up after killed runs", error),
  )
  // Runs after `cleared`, because `cleared` renews contents that are still needed, so that they are not removed.
  const cleanedUp = cleared
    .then(() => removeOldFiles(options, inUse))
    .catch((error: unknown) => onProblem("old files could not be removed", error))

  /**
   * Returns true if a session can still restore the file. Renews the stored content, so that it is kept for the full
   * retention time.
   */
  async function isKept(path: string): Promise<boolean> {
    const found = await lstat(path)
    if (found.size > contents.fileBytes) return false
    // The stored content of a link is its target.
    const bytes = found.isSymbolicLink() ? await readlink(path, "buffer") : await readFile(path)
    return (await contents.get(hashOf(bytes))) !== undefined && (await contents.put(bytes)) !== undefined
  }

  /** Returns true if any session of the family is in use, because sessions of a family read each other's outputs. */
  async function inUse(id: string): Promise<boolean> {
    const family = await familyOf(store, id)
    if (family.some(jobs.runsFor) || (await isAnyHeld(store, family))) return true
    for (const each of family) if (await processes.isAtWork(each)) return true
    return false
  }

  return {
    cleared,
    async done() {
      await Promise.all([cleared, cleanedUp])
    },
  }
}

/** Age and size limits for the files next to the database. Sessions are never deleted automatically. */
export interface RetentionLimits {
  /** Maximum number of days since the last use. */
  days: number
  /** Size limit in megabytes for full outputs. The same limit applies separately to the contents of changed files. */
  megabytes: number
}

/** Default limits. Half a gigabyte is enough for thousands of turns, and a week is enough time to return to a task. */
export const defaultRetentionLimits: RetentionLimits = { days: 7, megabytes: 512 }

/** Limits that keep everything. */
export const noRetentionLimits: RetentionLimits = {
  days: Number.POSITIVE_INFINITY,
  megabytes: Number.POSITIVE_INFINITY,
}

/** Name of the file whose modification time is the time of the last cleanup. */
const markName = "swept"

/**
 * Removes full outputs, file contents, logs and program copies that are older than the age limit. Then removes the
 * oldest outputs and the least recently used contents until both meet the size limit. Keeps the outputs of sessions
 * that are in use. Does nothing if a process has done this within the last day. Rejects if a file cannot be removed.
 */
async function removeOldFiles(
  { dataDirectory, retention: { days, megabytes }, outputDays = days, contents }: HousekeepingOptions,
  inUse: (sessionID: string) => Promise<boolean>,
): Promise<void> {
  const now = Date.now()
  // Set the mark before the cleanup, so that only one of two processes runs it.
  if (!(await markDue(join(dataDirectory, markName), now))) return
  const places = dataPaths(dataDirectory)
  const outputs = { days: outputDays, bytes: megabytes * 1024 * 1024 }
  await sweepDirectory(places.outputs, outputs, { spare: inUse, now })
  await contents.sweep(now)
  // Files in `removed` may be the user's, so they stay until the user deletes them.
  for (const folder of [places.programs, places.logs]) await sweepDirectory(folder, { days }, { now })
}

/**
 * Updates the mark and returns true. Returns false without an update if the mark is less than a day old or its
 * directory does not exist.
 */
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

/** Selects sessions to delete. At least one field is required. If both are set, a session must match both. */
export interface PruneChoice {
  /** Minimum time since the last use, in milliseconds. */
  olderThanMs?: number
  /** Number of newest sessions to keep per project. */
  keep?: number
}

/**
 * Creates a chooser of the sessions to delete. Pass it the root sessions that match `filter`, newest first: sessions of
 * subagents stay with their parent. Throws `UsageError` if neither field of the choice is set.
 */
export function createOldChooser(
  { olderThanMs, keep = 0 }: PruneChoice,
  now = Date.now(),
): { filter: Pick<SessionFilter, "updatedUntil">; isOld(session: Session): boolean } {
  if (olderThanMs === undefined && keep === 0)
    throw new UsageError("Select the sessions to delete with olderThanMs, keep, or both.")
  const latest = olderThanMs === undefined ? Number.POSITIVE_INFINITY : now - olderThanMs
  const kept = new Map<string, number>()
  return {
    // The newest sessions count towards `keep`.
    filter: keep === 0 ? { updatedUntil: latest } : {},
    isOld({ worktree, time }) {
      const newer = kept.get(worktree) ?? 0
      kept.set(worktree, newer + 1)
      return newer >= keep && time.updated <= latest
    },
  }
}

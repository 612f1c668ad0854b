import { readFile, stat } from "node:fs/promises"
import { type ContentStore, hashOf } from "../files/content-store.ts"
import type { TemporaryFileJournal } from "../files/temporary-files.ts"
import type { PlaceholderJournal } from "../sandbox/placeholders.ts"
import { isAnyHeld } from "../session/lease.ts"
import { familyOf } from "../session/lineage.ts"
import type { Store } from "../store/store.ts"
import type { JobTable } from "../tools/bash/background-jobs.ts"
import type { ProcessJournal } from "../util/process-journal.ts"
import type { TackleOptions } from "./options.ts"
import { cleanUp, type RetentionLimits } from "./retention.ts"

/** What goes on beside the first work of an engine. */
export interface Housekeeping {
  /** Resolves when the processes that killed runs left are ended, and what those had put into projects is removed. */
  cleared: Promise<void>
  /** Resolves when nothing of it goes on. */
  done(): Promise<void>
}

/** What is looked after, and what must be asked before anything of it goes. */
export interface HousekeepingOptions {
  dataDirectory: string
  retention: RetentionLimits
  /** `retentionDays` goes before the days of `retention`, for full outputs. */
  limits: TackleOptions["limits"]
  store: Store
  contents: Pick<ContentStore, "fileBytes" | "get" | "put" | "sweep">
  processes: Pick<ProcessJournal, "endOrphans" | "isAtWork">
  temporaries: Pick<TemporaryFileJournal, "endOrphans">
  placeholders: Pick<PlaceholderJournal, "endOrphans">
  jobs: Pick<JobTable, "runsFor">
  onProblem(message: string, error: unknown): void
}

/** Ends what killed runs left, and removes old files, at most once a day. Neither promise rejects: faults are told of. */
export function startHousekeeping(options: HousekeepingOptions): Housekeeping {
  const { dataDirectory, retention, limits, store, contents, processes, jobs, onProblem } = options
  const cleared = Promise.all([
    // A command that still runs must not lose what keeps it from its project's protected places.
    processes.endOrphans().then(options.placeholders.endOrphans),
    options.temporaries.endOrphans(isKept),
  ]).then(
    () => {},
    (error: unknown) => onProblem("what killed runs left could not be looked for", error),
  )
  // What was just found to be kept is not to be the first that goes.
  const cleanedUp = cleared
    .then(() =>
      cleanUp({
        dataDirectory,
        limits: retention,
        contents,
        inUse,
        ...(limits?.retentionDays === undefined ? {} : { outputDays: limits.retentionDays }),
      }),
    )
    .catch((error: unknown) => onProblem("old files could not be removed", error))

  /** Whether a session can still give the file's bytes back, which it then can for as long as from the change itself. */
  async function isKept(path: string): Promise<boolean> {
    if ((await stat(path)).size > contents.fileBytes) return false
    const bytes = await readFile(path)
    return (await contents.get(hashOf(bytes))) !== undefined && (await contents.put(bytes)) !== undefined
  }

  /** What one of a family wrote, another may read: all of it stays while one of them works. */
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

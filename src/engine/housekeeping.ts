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

/** Cleanup that runs beside the first work of an engine. */
export interface Housekeeping {
  /** Resolves when the processes of killed runs are ended and their temporary files are removed. */
  cleared: Promise<void>
  /** Resolves when all cleanup is done. */
  done(): Promise<void>
}

/** Targets of the cleanup, and the checks that protect them. */
export interface HousekeepingOptions {
  dataDirectory: string
  retention: RetentionLimits
  /** `retentionDays` overrides the days of `retention` for full outputs. */
  limits: TackleOptions["limits"]
  store: Store
  contents: Pick<ContentStore, "fileBytes" | "get" | "put" | "sweep">
  processes: Pick<ProcessJournal, "endOrphans" | "isAtWork">
  temporaries: Pick<TemporaryFileJournal, "endOrphans">
  placeholders: Pick<PlaceholderJournal, "endOrphans">
  jobs: Pick<JobTable, "runsFor">
  onProblem(message: string, error: unknown): void
}

/**
 * Cleans up after killed runs and, at most once a day, removes old files. The promises do not reject: problems are
 * reported.
 */
export function startHousekeeping(options: HousekeepingOptions): Housekeeping {
  const { dataDirectory, retention, limits, store, contents, processes, jobs, onProblem } = options
  const cleared = Promise.all([
    // A command that still runs must keep the placeholders that protect its project.
    processes.endOrphans().then(options.placeholders.endOrphans),
    options.temporaries.endOrphans(isKept),
  ]).then(
    () => {},
    (error: unknown) => onProblem("could not search for the remains of killed runs", error),
  )
  // Contents that were just found to be needed must not be swept first.
  const cleanedUp = cleared
    .then(() =>
      cleanUp({
        dataDirectory,
        limits: retention,
        contents,
        inUse,
        outputDays: limits?.retentionDays,
      }),
    )
    .catch((error: unknown) => onProblem("old files could not be removed", error))

  /**
   * Returns true if a session can still restore the file. Renews the content, so that undo has its full retention
   * time.
   */
  async function isKept(path: string): Promise<boolean> {
    if ((await stat(path)).size > contents.fileBytes) return false
    const bytes = await readFile(path)
    return (await contents.get(hashOf(bytes))) !== undefined && (await contents.put(bytes)) !== undefined
  }

  /** Sessions of a family read each other's outputs, so all stay while one of them is in use. */
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

import { readFile, stat } from "node:fs/promises"
import type { TemporaryFileJournal } from "../files/temporary-files.ts"
import type { PlaceholderJournal } from "../sandbox/placeholders.ts"
import { isAnyHeld } from "../session/lease.ts"
import { familyOf } from "../session/lineage.ts"
import { type ContentStore, hashOf } from "../store/content-store.ts"
import type { Store } from "../store/store.ts"
import type { JobTable } from "../tools/bash/background-jobs.ts"
import type { ProcessJournal } from "../util/process-journal.ts"
import type { TackleOptions } from "./options.ts"
import { cleanUp, type RetentionLimits } from "./retention.ts"

/** Cleanup that runs in the background after the engine has opened. */
export interface Housekeeping {
  /** Resolves when the processes of killed runs have ended and their temporary files have been removed. */
  cleared: Promise<void>
  /** Resolves when all cleanup is done. */
  done(): Promise<void>
}

/** Targets of the cleanup, and the checks that determine which files must stay. */
export interface HousekeepingOptions {
  dataDirectory: string
  retention: RetentionLimits
  /** For full outputs, `retentionDays` replaces the `days` of `retention`. */
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
 * Cleans up after killed runs and, at most once a day, removes old files. The promises do not reject. Problems go to
 * `onProblem`.
 */
export function startHousekeeping(options: HousekeepingOptions): Housekeeping {
  const { dataDirectory, retention, limits, store, contents, processes, jobs, onProblem } = options
  const cleared = Promise.all([
    // End processes first: a command that still runs needs the placeholders that protect its project.
    processes.endOrphans().then(options.placeholders.endOrphans),
    options.temporaries.endOrphans(isKept),
  ]).then(
    () => {},
    (error: unknown) => onProblem("could not clean up after killed runs", error),
  )
  // Run after `cleared`, which renews contents that are still needed. Otherwise they could be swept.
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
   * Returns true if a session can still restore the file. Renews the stored content, so that it is kept for the full
   * retention time.
   */
  async function isKept(path: string): Promise<boolean> {
    if ((await stat(path)).size > contents.fileBytes) return false
    const bytes = await readFile(path)
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

import type { JobTable } from "../builtin/command/job-table.ts"
import { isHeld } from "../session/lease.ts"
import type { ContentStore } from "../snapshot/content-store.ts"
import type { Store } from "../store/store.ts"
import type { ProcessBook } from "../util/process-book.ts"
import type { TackleOptions } from "./options.ts"
import { cleanUp, type RetentionLimits } from "./retention.ts"

/** What goes on beside the first work of an engine. */
export interface Housekeeping {
  /** Resolves when the processes that killed runs left are ended. */
  cleared: Promise<void>
  /** Resolves when nothing of it goes on. */
  done(): Promise<void>
}

export interface HousekeepingOptions {
  dataDirectory: string
  retention: RetentionLimits
  limits: TackleOptions["limits"]
  store: Store
  contents: Pick<ContentStore, "sweep">
  processes: Pick<ProcessBook, "endOrphans" | "isAtWork">
  jobs: Pick<JobTable, "runsFor">
  onFault(message: string, error: unknown): void
}

/** Ends what killed runs left, and removes old files, at most once a day. Neither promise rejects: faults are told of. */
export function startHousekeeping(options: HousekeepingOptions): Housekeeping {
  const { dataDirectory, retention, limits, store, contents, processes, jobs, onFault } = options
  const cleared = processes
    .endOrphans()
    .catch((error: unknown) => onFault("what killed runs left could not be looked for", error))
  const cleanedUp = cleanUp({
    dataDirectory,
    limits: retention,
    contents,
    inUse: async (id) => (await isHeld(store, id)) || jobs.runsFor(id) || (await processes.isAtWork(id)),
    ...(limits?.retentionDays === undefined ? {} : { outputDays: limits.retentionDays }),
  }).catch((error: unknown) => onFault("old files could not be removed", error))
  return {
    cleared,
    async done() {
      await Promise.all([cleared, cleanedUp])
    },
  }
}

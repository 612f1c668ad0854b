import type { Job, JobCapability } from "../../tool/context.ts"

/** Ended jobs beyond this many are forgotten, the oldest first: each may hold up to 0.8 MB of output. */
const maxEnded = 32

/** The jobs of one process. Whoever made the table ends them with `killAll` before the process ends. */
export interface JobTable extends JobCapability {
  /** True while a job of the session runs. */
  runsFor(sessionID: string): boolean
  /** Ends the jobs of these sessions and waits for them. */
  killOf(sessionIDs: readonly string[]): Promise<void>
  /** Ends every job and waits for it. */
  killAll(): Promise<void>
}

/** An empty table. */
export function createJobTable(): JobTable {
  const jobs = new Map<string, Job>()

  function forgetOldest(): void {
    const ended = [...jobs].filter(([, job]) => job.info().status !== "running")
    for (const [id] of ended.slice(0, Math.max(0, ended.length - maxEnded))) jobs.delete(id)
  }

  return {
    list: () => [...jobs.values()].map((job) => job.info()),
    get: (id) => jobs.get(id),
    add(job) {
      jobs.set(job.info().id, job)
      if (jobs.size > maxEnded) forgetOldest()
    },
    runsFor: (sessionID) =>
      [...jobs.values()].some((job) => {
        const info = job.info()
        return info.sessionID === sessionID && info.status === "running"
      }),
    async killOf(sessionIDs) {
      const own = [...jobs].filter(([, job]) => sessionIDs.includes(job.info().sessionID))
      await Promise.all(own.map(([, job]) => job.kill()))
      for (const [id] of own) jobs.delete(id)
    },
    async killAll() {
      await Promise.all([...jobs.values()].map((job) => job.kill()))
    },
  }
}

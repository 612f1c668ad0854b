import { setTimeout as delay } from "node:timers/promises"
import type { Job, JobCapability } from "../../tool/context.ts"
import type { OutputBuffer } from "../../tool/output-buffer.ts"
import type { OutputLimits } from "../../tool/tool.ts"
import { newId } from "../../util/id.ts"
import type { RunningProcess } from "../../util/process.ts"
import { currentTime } from "../../util/time.ts"

/**
 * Maximum number of ended jobs to keep. The oldest are dropped first. An ended job keeps at most 16 KB of output in
 * memory.
 */
const maxEnded = 32

/** The background jobs in one engine. The creator of the table must call `killAll` when the engine closes. */
export interface JobTable extends JobCapability {
  /** Returns true if the session has a running job. */
  runsFor(sessionID: string): boolean
  /** Kills and removes the jobs in these sessions. Resolves when they have ended. */
  killOf(sessionIDs: readonly string[]): Promise<void>
  /** Kills all jobs. Resolves when they have ended. */
  killAll(): Promise<void>
}

/** Creates an empty job table. */
export function createJobTable(): JobTable {
  const jobs = new Map<string, Job>()

  function dropOldest(): void {
    const ended = [...jobs].filter(([, job]) => job.info().status !== "running")
    for (const [id] of ended.slice(0, Math.max(0, ended.length - maxEnded))) jobs.delete(id)
  }

  return {
    list: () => [...jobs.values()].map((job) => job.info()),
    get: (id) => jobs.get(id),
    add(job) {
      jobs.set(job.info().id, job)
      if (jobs.size > maxEnded) dropOldest()
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

/** Output limits for a job. They are lower than the limits for a command, because the model polls jobs. */
const jobLimits: OutputLimits = { maxLines: 400, maxBytes: 16_000, keep: "head-tail" }

/** Delays in milliseconds before checking again whether a program that closed its output has exited. */
const exitChecksMs = [10, 100, 1_000]

/** Turns the remaining processes of a command into a job. The job does not keep Tackle's process from exiting. */
export function createJob(options: {
  sessionID: string
  command: string
  /** Absolute path of the directory in which the command was started. */
  workdir: string
  startedAt: number
  process: RunningProcess
  /** Receives further output. The job closes the buffer. */
  buffer: OutputBuffer
  /** Called once, when the job has ended and its output is complete. */
  onEnd(): void
}): Job {
  const { sessionID, command, workdir, startedAt } = options
  const id = newId("job")
  // These objects refer to the call, which refers to the session. They are released so that an ended job does not keep
  // its session in memory.
  let live: { process: RunningProcess; onEnd(): void } | undefined = options
  let buffer: OutputBuffer | undefined = options.buffer
  let last: { bytes: number; view: ReturnType<Job["output"]> } | undefined
  let killed = false
  let endedAt: number | undefined

  options.process.unref()
  // This promise never rejects. A job usually ends when its output closes, but a process can close its output and keep
  // running.
  void options.process.closed.then(async () => {
    if (buffer) last = { bytes: buffer.bytes, view: buffer.view(jobLimits) }
    buffer?.close()
    buffer = undefined
    for (const ms of exitChecksMs) {
      if (!isRunning()) return
      await delay(ms, undefined, { ref: false })
    }
    isRunning()
  })

  function isRunning(): boolean {
    if (live?.process.running()) return true
    endedAt ??= currentTime()
    // Output may still arrive until `last` is set.
    if (live && last) {
      const { onEnd } = live
      live = undefined
      onEnd()
    }
    return false
  }

  return {
    info() {
      const status = isRunning() ? "running" : killed ? "killed" : "exited"
      const bytes = last?.bytes ?? buffer?.bytes ?? 0
      const info = { id, sessionID, command, status, startedAt, bytes } as const
      return endedAt === undefined ? info : { ...info, endedAt }
    },
    get input() {
      const input = live?.process.input
      return input && { workdir, ...input }
    },
    output: () => last?.view ?? buffer?.view(jobLimits) ?? { text: "", truncated: false },
    async kill() {
      if (!isRunning()) return
      killed = true
      await live?.process.kill()
      endedAt = currentTime()
    },
  }
}

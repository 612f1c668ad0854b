import type { Job } from "../../tool/context.ts"
import type { OutputBuffer } from "../../tool/output-buffer.ts"
import type { OutputLimits } from "../../tool/tool.ts"
import { newId } from "../../util/id.ts"
import type { RunningProcess } from "../../util/process.ts"

/** Less than a command's own output: a job is looked at again and again. */
const jobLimits: OutputLimits = { maxLines: 400, maxBytes: 16_000, keep: "head-tail" }

/** What a command left running, from now on by itself: it no longer keeps this process from ending. */
export function createJob(options: {
  sessionID: string
  command: string
  /** Where it was started. Absolute. */
  workdir: string
  startedAt: number
  process: RunningProcess
  /** Takes the output on. Closed here when that ends. */
  buffer: OutputBuffer
}): Job {
  const { sessionID, command, workdir, startedAt, process, buffer } = options
  const id = newId("job")
  let killed = false
  let endedAt: number | undefined

  process.unref()
  // Never rejects. There is no one to wait for it: it is the job's end.
  void process.closed.then(() => buffer.close())

  function isRunning(): boolean {
    if (endedAt === undefined && !process.running()) endedAt = Date.now()
    return endedAt === undefined
  }

  return {
    info() {
      const status = isRunning() ? "running" : killed ? "killed" : "exited"
      const info = { id, sessionID, command, status, startedAt, bytes: buffer.bytes } as const
      return endedAt === undefined ? info : { ...info, endedAt }
    },
    ...(process.input ? { input: { workdir, ...process.input } } : {}),
    output: () => buffer.view(jobLimits),
    async kill() {
      if (!isRunning()) return
      killed = true
      await process.kill()
      endedAt = Date.now()
    },
  }
}

import { setTimeout as delay } from "node:timers/promises"
import type { Job } from "../../tool/context.ts"
import type { OutputBuffer } from "../../tool/output-buffer.ts"
import type { OutputLimits } from "../../tool/tool.ts"
import { newId } from "../../util/id.ts"
import type { RunningProcess } from "../../util/process.ts"

/** Less than a command's own output: a job is looked at again and again. */
const jobLimits: OutputLimits = { maxLines: 400, maxBytes: 16_000, keep: "head-tail" }

/** When to look again whether a program that closed its output is gone, in milliseconds: it closes before it is. */
const looksMs = [10, 100, 1_000]

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
  /** Called once, when it has ended and said its last. */
  onEnd(): void
}): Job {
  const { sessionID, command, workdir, startedAt } = options
  const id = newId("job")
  // All of them lead to the call that started it, and so to its session: what has ended keeps none.
  let live: { process: RunningProcess; onEnd(): void } | undefined = options
  let buffer: OutputBuffer | undefined = options.buffer
  let last: { bytes: number; view: ReturnType<Job["output"]> } | undefined
  let killed = false
  let endedAt: number | undefined

  options.process.unref()
  // Never rejects. There is no one to wait for it: it is the job's end, unless it runs on in silence.
  void options.process.closed.then(async () => {
    if (buffer) last = { bytes: buffer.bytes, view: buffer.view(jobLimits) }
    buffer?.close()
    buffer = undefined
    for (const ms of looksMs) {
      if (!isRunning()) return
      await delay(ms, undefined, { ref: false })
    }
    isRunning()
  })

  function isRunning(): boolean {
    if (live?.process.running()) return true
    endedAt ??= Date.now()
    // What it said last may still be on its way.
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
      endedAt = Date.now()
    },
  }
}

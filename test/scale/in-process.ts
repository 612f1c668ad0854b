import type { Again, Dispatcher, NewJob, WorkOptions } from "../../src/scale/dispatcher.ts"
import { within } from "../../src/util/abort.ts"

/** Options of {@link createInProcessDispatcher}. */
interface InProcessOptions {
  /** Receives the error of a handler. */
  onProblem(message: string, error: unknown): void
}

/** Number of ended jobs whose ids are remembered, so that these jobs are not repeated. */
const rememberedIds = 10_000

/** Creates a dispatcher for the workers of this process. Its jobs end with the process. */
export function createInProcessDispatcher({ onProblem }: InProcessOptions): Dispatcher {
  let waiting: NewJob[] = []
  /** Jobs whose handlers run. A canceled job stays in this set but does not block its key. */
  const active = new Map<NewJob, { controller: AbortController; done: Promise<void>; isForgotten: boolean }>()
  /** Keys and ids of all known jobs, oldest first. */
  const known = new Set<string>()
  const sinces = new WeakMap<NewJob, number | undefined>()
  const timers = new Set<NodeJS.Timeout>()
  let options: WorkOptions | undefined
  let isClosed = false
  let count = 0

  function start(): void {
    if (!options || isClosed) return
    const busy = new Set([...active].flatMap(([{ key }, { isForgotten }]) => (isForgotten ? [] : [key])))
    for (const job of [...waiting]) {
      if (active.size >= options.concurrency) return
      if (busy.has(job.key)) continue
      busy.add(job.key)
      waiting = waiting.filter((each) => each !== job)
      const controller = new AbortController()
      active.set(job, { controller, done: run(job, options, controller), isForgotten: false })
    }
  }

  async function run(job: NewJob, { handle }: WorkOptions, { signal }: AbortController): Promise<void> {
    let again: Again | undefined
    try {
      // The caller of `enqueue` continues before the job starts, as with a queue in a database.
      await Promise.resolve()
      again = await handle({ key: job.key, reason: job.reason, since: sinces.get(job), signal })
    } catch (error) {
      onProblem(`the job for ${job.key} failed`, error)
    }
    const isForgotten = active.get(job)?.isForgotten
    active.delete(job)
    if (again && !isForgotten) putBack(job.key, again)
    start()
  }

  function putBack(key: string, { reason, afterMs, since }: Again): void {
    const timer = setTimeout(() => {
      timers.delete(timer)
      count += 1
      const job: NewJob = { key, id: `again ${count}`, reason }
      sinces.set(job, since)
      add(job)
    }, afterMs)
    timers.add(timer)
  }

  function add(job: NewJob): void {
    const name = `${job.key} ${job.id}`
    if (known.has(name)) return
    known.add(name)
    if (job.replaces) forget(job.key)
    const [oldest] = known
    if (known.size > rememberedIds && oldest !== undefined) known.delete(oldest)
    waiting.push(job)
    start()
  }

  function forget(key: string): void {
    waiting = waiting.filter((job) => job.key !== key)
    for (const [job, state] of active) if (job.key === key) state.isForgotten = true
  }

  async function close(graceMs: number): Promise<void> {
    isClosed = true
    for (const timer of timers) clearTimeout(timer)
    const done = Promise.all([...active.values()].map((each) => each.done))
    await within(done, graceMs)
    for (const { controller } of active.values()) controller.abort()
    await done
  }

  let closed: Promise<void> | undefined
  return {
    enqueue: async (job) => add(job),
    async work(given) {
      options = given
      start()
    },
    async cancel(key) {
      forget(key)
      start()
    },
    stats: async () => ({
      waiting: waiting.length + timers.size,
      active: [...active.values()].filter(({ isForgotten }) => !isForgotten).length,
    }),
    close(graceMs = 0) {
      closed ??= close(graceMs)
      return closed
    },
  }
}

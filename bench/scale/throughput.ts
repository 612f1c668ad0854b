import { readFileSync } from "node:fs"
import { setTimeout as delay } from "node:timers/promises"
import { percentile } from "../statistics.ts"
import { startCluster } from "./cluster.ts"
import { deltas, type ScaleModel, startScaleModel } from "./model.ts"
import { type ProcessorUse, watchProcessor } from "./processor.ts"
import { openSession } from "./session.ts"

/** Measurements with one number of workers and sessions. Times are in milliseconds. */
export interface Throughput {
  workers: number
  sessions: number
  turns: number
  /** Maximum number of sessions that each worker runs at once. Default: the command's default. */
  concurrency?: number | undefined
  /** Prompts per second from all sessions together. Default: each session sends its next prompt at once. */
  rate?: number | undefined
  turnsPerSecond: number
  /** Time from sending a prompt to the first model request, while all sessions have a prompt. */
  firstRequestP50: number
  firstRequestP99: number
  /** Time from when the model sends a delta to its arrival at a server's client. */
  lagP50: number
  lagP99: number
  /** Number of write transactions, including those for jobs, leases and streamed text. */
  commitsPerTurn: number
  workerBytesPerSession: number
  processor: ProcessorUse
}

/** Number of sessions that share a project. */
const sessionsPerProject = 50

/** Runs sessions with several turns each, on new processes. */
export async function measureThroughput(options: {
  command: string
  workers: number
  sessions: number
  turns: number
  concurrency?: number | undefined
  rate?: number | undefined
}): Promise<Throughput> {
  const { command, workers, sessions: count, turns, rate } = options
  const model = await startScaleModel()
  const cluster = await startCluster({
    command,
    modelUrl: model.url,
    // A server accepts up to 500 requests at once per token.
    servers: Math.ceil(count / 400),
    workers,
    projects: Math.ceil(count / sessionsPerProject),
    concurrency: options.concurrency,
  })
  try {
    const sessions = await Promise.all(
      Array.from({ length: count }, (_, index) =>
        openSession(cluster.client(index, Math.floor(index / sessionsPerProject)), `s${index}`),
      ),
    )
    const lags: number[] = []
    for (const { name, onEvent } of sessions) onEvent(lagMeter(model, name, lags))
    const waits: number[] = []

    // The first turn opens the engines.
    await Promise.all(sessions.map((session) => session.turn(0)))
    lags.length = 0
    const transactions = async () => Number((await cluster.query("SELECT txid_current() AS id"))[0]?.id)
    const [before, started] = [await transactions(), performance.now()]
    const processorUse = watchProcessor()
    await Promise.all(
      sessions.map(async (session, index) => {
        for (let turn = 1; turn <= turns; turn += 1) {
          if (rate) await until(started + (((turn - 1) * count + index) / rate) * 1000)
          const sent = performance.now()
          await session.turn(turn)
          waits.push((model.arrivals.get(`${session.name} ${turn}`) ?? Number.NaN) - sent)
        }
      }),
    )
    const seconds = (performance.now() - started) / 1000
    const processor = processorUse()
    const commits = (await transactions()) - before
    const memory = cluster.workers.map(({ child }) => residentBytes(child.pid ?? 0))
    for (const { close } of sessions) close()
    return {
      workers,
      sessions: count,
      turns,
      concurrency: options.concurrency,
      rate,
      turnsPerSecond: (count * turns) / seconds,
      firstRequestP50: percentile(waits, 0.5),
      firstRequestP99: percentile(waits, 0.99),
      lagP50: percentile(lags, 0.5),
      lagP99: percentile(lags, 0.99),
      commitsPerTurn: commits / (count * turns),
      workerBytesPerSession: memory.reduce((sum, each) => sum + each, 0) / count,
      processor,
    }
  } finally {
    await cluster.close()
    await model.close()
  }
}

async function until(time: number): Promise<void> {
  const waitMs = time - performance.now()
  if (waitMs > 0) await delay(waitMs)
}

/** Returns a listener that measures the age of streamed text. */
function lagMeter(model: ScaleModel, name: string, lags: number[]) {
  const lengths = new Map<string, number>()
  return (event: { type: string; partID?: string; field?: string; delta?: string }) => {
    if (event.type !== "part.delta" || event.field !== "text" || !event.partID) return
    const length = (lengths.get(event.partID) ?? 0) + (event.delta ?? "").length
    lengths.set(event.partID, length)
    const start = model.answers.get(name)
    // The oldest text in the event was sent with the first delta that it contains.
    const first = Math.floor((length - (event.delta ?? "").length) / deltas.size)
    if (start !== undefined) lags.push(performance.now() - start - first * deltas.everyMs)
  }
}

function residentBytes(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8")
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) * 1024
}

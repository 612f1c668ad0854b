import { mkdirSync, rmSync } from "node:fs"
import { setTimeout as delay } from "node:timers/promises"
import type { Row } from "../bench.ts"
import { type Line, line, type Runs, type Target, type Unit } from "../line.ts"
import { startPacedModel } from "../paced-model.ts"
import type { Service } from "../service.ts"
import { percentile } from "../statistics.ts"
import type { Subject } from "../subject.ts"

/** Sessions that run at the same time. */
const atOnce = 50
/** An ideal answer takes 200 deltas of 5 ms: one second. */
const pace = { count: 200, everyMs: 5 }

/** Figures from one run, keyed by the title of their line. */
type Figures = Record<string, number>

const lines: { title: string; unit: Unit; target: Target }[] = [
  { title: "warm prompt to model request, over HTTP", unit: "time", target: { kind: "figure", limit: 10 } },
  { title: `${atOnce} prompts at once, median`, unit: "time", target: { kind: "figure", limit: 200 } },
  { title: `${atOnce} prompts at once, p99`, unit: "time", target: { kind: "figure", limit: 200 } },
  {
    title: `${atOnce} prompts at once, second round, p99`,
    unit: "time",
    target: { kind: "figure", limit: 200 },
  },
  { title: `${atOnce} sessions at once, all done`, unit: "time", target: { kind: "figure", limit: 1600 } },
  {
    title: `lag of a delta over SSE, ${atOnce} sessions, p99`,
    unit: "time",
    target: { kind: "figure", limit: 60 },
  },
  {
    title: `lag of a delta over SSE, ${atOnce} sessions, second round, p99`,
    unit: "time",
    target: { kind: "figure", limit: 60 },
  },
  { title: "memory of an idle server", unit: "size", target: { kind: "figure", limit: 90e6 } },
  { title: `memory after ${atOnce} sessions`, unit: "size", target: { kind: "figure", limit: 150e6 } },
  {
    title: "100 sessions with a client each: lag, p99",
    unit: "time",
    target: { kind: "figure", limit: 100 },
  },
  { title: "events lost or out of order", unit: "count", target: { kind: "figure", limit: 0 } },
  {
    title: "CPU of 200 clients of one session, against 10 each of 20",
    unit: "ratio",
    target: { kind: "figure", limit: 2 },
  },
  {
    title: "CPU of an idle server with 1,000 sessions, in 5 s",
    unit: "time",
    target: { kind: "figure", limit: 20 },
  },
  {
    title: "memory of an idle server with 1,000 sessions",
    unit: "size",
    target: { kind: "figure", limit: 90e6 },
  },
]

/**
 * Measures HTTP servers: latency, many sessions, many clients, memory. OpenCode is measured up to 50 sessions, because
 * it has one event stream for all sessions.
 */
export const serviceRow: Row = {
  id: "service",
  async measure(bench) {
    const servers = bench.subjects.filter(({ serve }) => serve)
    const runs: Runs<Figures> = await bench.alternate(servers, bench.count(3), async (subject, home) => {
      rmSync(home, { recursive: true, force: true })
      mkdirSync(home, { recursive: true })
      return measureService(subject, home)
    })
    const measured = lines.map(
      ({ title, unit, target }): Line =>
        line({
          row: "service",
          title,
          unit,
          target,
          runs,
          figure: (figures) => figures[title] ?? Number.NaN,
        }),
    )
    const [first] = measured
    if (first && !runs.has("opencode"))
      first.details = ["service: opencode serve was not measured. Install opencode and pass --peers."]
    return measured
  },
}

async function measureService({ name, serve }: Subject, home: string): Promise<Figures> {
  if (!serve) throw new Error(`${name} has no server.`)
  await using model = await startPacedModel(pace)
  const figures: Figures = {}
  {
    await using service = await serve({ url: model.url, home })
    await measureWork(service, model.arrivals, figures)
    if (name !== "tackle") return figures
    await measureClients(service, model.arrivals, figures)
  }
  await using restarted = await serve({ url: model.url, home })
  await delay(1_000)
  const before = restarted.cpuMs()
  await delay(5_000)
  figures["CPU of an idle server with 1,000 sessions, in 5 s"] = restarted.cpuMs() - before
  figures["memory of an idle server with 1,000 sessions"] = restarted.memory()
  return figures
}

/** Measures latency, and 50 sessions at once. */
async function measureWork(
  service: Service,
  arrivals: ReadonlyMap<string, number>,
  figures: Figures,
): Promise<void> {
  await delay(500)
  figures["memory of an idle server"] = service.memory()

  const warm: number[] = []
  for (let index = 0; index < 5; index += 1) {
    const text = `warm ${index}`
    const session = await service.createSession()
    const sent = performance.now()
    await service.prompt(session, text)
    await service.idle(session)
    warm.push((arrivals.get(text) ?? Number.NaN) - sent)
  }
  figures["warm prompt to model request, over HTTP"] = percentile(warm, 0.5)

  const many = await runMany(service, arrivals, { sessions: atOnce, clients: 1 })
  figures[`${atOnce} prompts at once, median`] = percentile(many.latencies, 0.5)
  figures[`${atOnce} prompts at once, p99`] = percentile(many.latencies, 0.99)
  figures[`${atOnce} sessions at once, all done`] = many.doneMs
  figures[`lag of a delta over SSE, ${atOnce} sessions, p99`] = percentile(many.lags, 0.99)
  figures[`memory after ${atOnce} sessions`] = service.memory()

  // In the first round after a start, Node still compiles much of the server's code.
  const again = await runMany(service, arrivals, { sessions: atOnce, clients: 1 })
  figures[`${atOnce} prompts at once, second round, p99`] = percentile(again.latencies, 0.99)
  figures[`lag of a delta over SSE, ${atOnce} sessions, second round, p99`] = percentile(again.lags, 0.99)
  figures["events lost or out of order"] = many.wrong + again.wrong
}

/** Measures many clients, and stores 1,000 sessions. */
async function measureClients(
  service: Service,
  arrivals: ReadonlyMap<string, number>,
  figures: Figures,
): Promise<void> {
  const hundred = await runMany(service, arrivals, { sessions: 100, clients: 1 })
  figures["100 sessions with a client each: lag, p99"] = percentile(hundred.lags, 0.99)
  figures["events lost or out of order"] = (figures["events lost or out of order"] ?? 0) + hundred.wrong

  const spread = await runMany(service, arrivals, { sessions: 20, clients: 10 })
  const fanned = await runMany(service, arrivals, { sessions: 1, clients: 200 })
  figures["CPU of 200 clients of one session, against 10 each of 20"] = fanned.cpuMs / spread.cpuMs

  const createTwenty = () => Promise.all(Array.from({ length: 20 }, () => service.createSession()))
  for (let count = 5 + 2 * atOnce + 100 + 21; count < 1_000; count += 20) await createTwenty()
}

/** Prompts several sessions at once, each followed by some clients, and waits until every client saw the end. */
async function runMany(
  service: Service,
  arrivals: ReadonlyMap<string, number>,
  { sessions, clients }: { sessions: number; clients: number },
) {
  const ids = await Promise.all(Array.from({ length: sessions }, () => service.createSession()))
  const lags: number[] = []
  const latencies: number[] = []
  const leave: (() => void)[] = []
  const ends: Promise<void>[] = []
  let wrong = 0
  for (const id of ids) {
    for (let client = 0; client < clients; client += 1) {
      const end = Promise.withResolvers<void>()
      ends.push(end.promise)
      let last = 0
      let text = ""
      const follow = service.follow(id, {
        onNumber(seq) {
          if (seq <= last) wrong += 1
          last = seq
        },
        onDelta(delta) {
          text += delta
          const now = performance.now()
          for (const time of delta.trim().split(" ")) lags.push(now - Number(time))
        },
        onEnd() {
          if (text.trim().split(" ").length !== pace.count) wrong += 1
          end.resolve()
        },
      })
      leave.push(await follow)
    }
  }
  const cpu = service.cpuMs()
  const started = performance.now()
  await Promise.all(
    ids.map(async (id) => {
      const sent = performance.now()
      await service.prompt(id, id)
      await service.idle(id)
      latencies.push((arrivals.get(id) ?? Number.NaN) - sent)
    }),
  )
  const doneMs = performance.now() - started
  await Promise.all(ends)
  const cpuMs = service.cpuMs() - cpu
  for (const close of leave) close()
  return { lags, latencies, doneMs, cpuMs, wrong }
}

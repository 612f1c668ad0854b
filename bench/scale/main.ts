import { existsSync } from "node:fs"
import { mkdir, readFile, writeFile } from "node:fs/promises"
import { cpus } from "node:os"
import { dirname, join } from "node:path"
import { parseArgs } from "node:util"
import { percentile } from "../statistics.ts"
import { type Chaos, measureChaos } from "./chaos.ts"
import { nameOf, plotThroughput } from "./plot.ts"
import { measureThroughput, type Throughput } from "./throughput.ts"

const help = `npm run bench:scale -- [options]

Measures servers and workers on PostgreSQL, with a scripted model that thinks 20 ms before each step. A turn has a read,
a bash and an answer.

  --workers 1,2,4         numbers of workers
  --sessions 50,200,1000  numbers of sessions
  --turns N               turns in each session; default: 20, or 8 for 1,000 sessions and more
  --concurrency N         sessions that a worker runs at once; default: the command's default
  --rate N                prompts per second from all sessions together; default: as many as possible
  --chaos                 instead, kill workers and servers, stop workers for longer than their lease, crash PostgreSQL
                          and cut all connections, and compare effects and histories. Only the first number in each
                          list applies. The exit code is 1 if a guarantee is broken
  --every 2000            milliseconds between two failures
  --tackle FILE           the command to measure; default: bin/tackle

Without options, also measures three rows below the machine's capacity, and replaces all earlier results.
Results are written to bench/results/scale.json. Then docs/scale.svg is drawn from this file.
`

const repository = dirname(dirname(import.meta.dirname))
const file = join(repository, "bench/results/scale.json")
const plotFile = join(repository, "docs/scale.svg")

/** The contents of the results file. */
interface Results {
  cores?: number
  throughput?: Throughput[]
  chaos?: Chaos
}

type Row = Pick<Throughput, "workers" | "sessions" | "turns" | "concurrency" | "rate">

/** Rows that leave part of the processor idle, so that they show waiting times and the effect of a second worker. */
const belowCapacity: readonly Row[] = [
  { workers: 1, sessions: 200, turns: 3, rate: 8 },
  { workers: 1, sessions: 50, turns: 20, concurrency: 4 },
  { workers: 2, sessions: 50, turns: 20, concurrency: 4 },
]

function defaultTurns(sessions: number): number {
  return sessions < 1000 ? 20 : 8
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      workers: { type: "string", default: "1,2,4" },
      sessions: { type: "string", default: "50,200,1000" },
      turns: { type: "string" },
      tackle: { type: "string", default: join(repository, "bin/tackle") },
      chaos: { type: "boolean" },
      every: { type: "string", default: "2000" },
      concurrency: { type: "string" },
      rate: { type: "string" },
      help: { type: "boolean" },
    },
  })
  if (values.help) return void process.stdout.write(help)
  const numbers = (text: string) => text.split(",").map(Number)
  if (values.chaos) {
    const chaos = await measureChaos({
      command: values.tackle,
      workers: numbers(values.workers)[0] ?? 1,
      sessions: numbers(values.sessions)[0] ?? 1,
      turns: values.turns ? Number(values.turns) : defaultTurns(1),
      everyMs: Number(values.every),
    })
    printChaos(chaos)
    return store((before) => ({ ...before, chaos }))
  }
  const rows: Row[] = numbers(values.sessions).flatMap((sessions) =>
    numbers(values.workers).map((workers) => ({
      workers,
      sessions,
      turns: values.turns ? Number(values.turns) : defaultTurns(sessions),
      concurrency: values.concurrency ? Number(values.concurrency) : undefined,
      rate: values.rate ? Number(values.rate) : undefined,
    })),
  )
  const isComplete = process.argv.length === 2
  if (isComplete) await store((before) => ({ ...before, throughput: [] }))
  for (const each of isComplete ? [...belowCapacity, ...rows] : rows) {
    const row = await measureThroughput({ command: values.tackle, ...each })
    print(row)
    await store((before) => {
      const others = (before.throughput ?? []).filter((old) => nameOf(old) !== nameOf(row))
      return { ...before, throughput: [...others, row] }
    })
  }
}

async function store(update: (before: Results) => Results): Promise<void> {
  await mkdir(dirname(file), { recursive: true })
  const before = existsSync(file) ? (JSON.parse(await readFile(file, "utf8")) as Results) : {}
  const results = { ...update(before), cores: cpus().length }
  await writeFile(file, `${JSON.stringify(results, undefined, 2)}\n`)
  await writeFile(plotFile, plotThroughput(results.throughput ?? [], results.cores))
}

function printChaos({ effects, inputs, histories, takeovers, takeoversInOutages, ...chaos }: Chaos): void {
  const counts = Object.entries(chaos).map(([name, value]) => `${name} ${value}`)
  const summary = (times: readonly number[]) => {
    if (times.length === 0) return "0"
    const seconds = (share: number) => `${(percentile(times, share) / 1000).toFixed(1)} s`
    return `${times.length} (p50 ${seconds(0.5)}, p99 ${seconds(0.99)}, longest ${seconds(1)})`
  }
  process.stdout.write(
    `${counts.join(", ")}, takeovers ${summary(takeovers)}, in outages of PostgreSQL ${summary(takeoversInOutages)}\n`,
  )
  for (const problem of effects) process.stdout.write(`wrong effect: ${problem}\n`)
  for (const problem of inputs) process.stdout.write(`wrong input: ${problem}\n`)
  for (const problem of histories) process.stdout.write(`other history: ${problem}\n`)
  if (effects.length + inputs.length + histories.length > 0) process.exitCode = 1
}

function print(row: Throughput): void {
  const ms = (value: number) => `${value.toFixed(0)} ms`
  const { workers, commands, servers, database, bench, busy, own } = row.processor
  const perTurn = (seconds: number) => ((seconds * 1000) / (row.sessions * row.turns)).toFixed(0)
  const cells = [
    `${nameOf(row)} x ${row.turns} turns`,
    `${row.turnsPerSecond.toFixed(1)} turns/s`,
    `first request ${ms(row.firstRequestP50)}, p99 ${ms(row.firstRequestP99)}`,
    `lag ${ms(row.lagP50)}, p99 ${ms(row.lagP99)}`,
    `${row.commitsPerTurn.toFixed(1)} commits/turn`,
    `${(row.workerBytesPerSession / 1e6).toFixed(1)} MB/session`,
    `cores ${(busy * 100).toFixed(0)}% busy, ${(own * 100).toFixed(0)}% by this bench`,
    `CPU ms/turn: workers ${perTurn(workers)}, commands ${perTurn(commands)}, servers ${perTurn(servers)}, PostgreSQL ${perTurn(database)}, bench ${perTurn(bench)}`,
  ]
  process.stdout.write(`${cells.join(" | ")}\n`)
}

await main()

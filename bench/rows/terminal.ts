import { mkdir } from "node:fs/promises"
import { join } from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import type { Bench, Row } from "../bench.ts"
import { type Line, line, type Runs, type Target, type Unit } from "../line.ts"
import { lastText, storeLongSession } from "../long-session.ts"
import { startPacedModel } from "../paced-model.ts"
import { type PtyProgram, startOnPty } from "../pty.ts"
import { percentile } from "../statistics.ts"
import type { Launch, Place, Subject } from "../subject.ts"

/** Each of these streamed answers has 1,000 updates. */
const pace = { count: 1_000, everyMs: 5 }
/** With fewer keys, a single delay of the machine would determine the percentile. */
const keyCount = 250
const keyIntervalMs = 14

/** Values from one interactive run. */
type Figures = Record<string, number>

const titles = {
  bytes: "terminal: written for 1,000 updates",
  clears: "terminal: full clears for 1,000 updates",
  cpu: "terminal: CPU for 1,000 updates",
  writes: "terminal: written while idle",
  idle: "terminal: CPU while idle",
  echo: "terminal: key to echo while streaming, p99",
} as const

const lines: { title: string; unit: Unit; limit: number }[] = [
  { title: titles.bytes, unit: "size", limit: 150e3 },
  { title: titles.clears, unit: "count", limit: 0 },
  { title: titles.cpu, unit: "time", limit: 1_000 },
  { title: titles.writes, unit: "size", limit: 0 },
  { title: titles.idle, unit: "percent", limit: 0.1 },
  { title: titles.echo, unit: "time", limit: 16 },
]

/** Measures the interactive terminal on a pseudoterminal. */
export const terminalRow: Row = {
  id: "terminal",
  measure: async (bench) => [await startLine(bench), ...(await useLines(bench)), ...(await longLines(bench))],
}

/** Measures the time from the start until a typed character is shown. The floor is an empty Node program. */
async function startLine(bench: Bench): Promise<Line> {
  const floor = bench.subjects.filter(({ name }) => name === "floor")
  const runs = await bench.alternate(
    [...floor, ...interactive(bench)],
    bench.count(15),
    async (subject, home) => {
      await using program = await start(subject, { home, url: "http://127.0.0.1:9/v1" })
      if (subject.name === "floor") return (await program.ended) - program.started
      program.type("~")
      return (await program.sees("~")) - program.started
    },
  )
  return line({
    row: "terminal",
    title: "terminal: start to prompt (floor: bare node)",
    unit: "time",
    runs,
    figure: (ms) => ms,
    target: { kind: "ratio", limit: 2.5, of: "floor" },
  })
}

/** Measures two streamed answers, the second while the user types, and idle time between them. */
async function useLines(bench: Bench): Promise<Line[]> {
  const idleMs = bench.count(60) * 1_000
  const runs: Runs<Figures> = await bench.alternate(interactive(bench), 1, async (subject, home) => {
    await using model = await startPacedModel(pace)
    await using program = await start(subject, { home, url: model.url })
    await delay(2_000)
    return {
      ...(await measureStream(program)),
      ...(await measureIdle(program, idleMs)),
      ...(await measureTyping(program)),
    }
  })
  return lines.map(({ title, unit, limit }) =>
    line({
      ...{ row: "terminal", title, unit, runs },
      figure: (figures) => figures[title] ?? Number.NaN,
      target: { kind: "figure", limit },
    }),
  )
}

async function measureStream(program: PtyProgram): Promise<Figures> {
  const cpu = program.cpuMs()
  const from = program.output.length
  program.type("stream\r")
  await delay(pace.count * pace.everyMs)
  await quiet(program)
  const written = program.output.slice(from)
  return {
    [titles.bytes]: written.length,
    [titles.clears]: written.split("\u001b[2J").length + written.split("\u001b[3J").length - 2,
    [titles.cpu]: program.cpuMs() - cpu,
  }
}

async function measureIdle(program: PtyProgram, idleMs: number): Promise<Figures> {
  // After some seconds without work, V8 cleans up once.
  await delay(10_000)
  const from = program.output.length
  const cpu = program.cpuMs()
  await delay(idleMs)
  return {
    [titles.writes]: program.output.length - from,
    [titles.idle]: ((program.cpuMs() - cpu) / idleMs) * 100,
  }
}

async function measureTyping(program: PtyProgram): Promise<Figures> {
  program.type("again\r")
  await delay(500)
  const times: number[] = []
  for (let key = 0; key < keyCount; key += 1) {
    const letter = String.fromCharCode("a".charCodeAt(0) + (key % 26))
    const from = program.output.length
    const typed = performance.now()
    program.type(letter)
    // The cursor follows the character.
    times.push((await program.sees(`${letter}\x1b[7m`, { from })) - typed)
    await delay(keyIntervalMs)
  }
  return { [titles.echo]: percentile(times, 0.99) }
}

/** Waits until nothing has been written for a while. */
async function quiet(program: PtyProgram): Promise<void> {
  for (let length = -1; length !== program.output.length; ) {
    length = program.output.length
    await delay(1_500)
  }
}

/** Measures the start with a session of 5,000 parts. */
async function longLines(bench: Bench): Promise<Line[]> {
  const ids = new Map<string, string>()
  const runs = await bench.alternate(interactive(bench), bench.count(7), async (subject, home) => {
    await mkdir(home, { recursive: true })
    const session = ids.get(home) ?? (await storeLongSession(home, join(home, "data")))
    ids.set(home, session)
    await using program = await start(subject, { home, url: "http://127.0.0.1:9/v1", session })
    program.type("~")
    const shown = await Promise.all([program.sees("~"), program.sees(lastText)])
    return { ms: Math.max(...shown) - program.started, bytes: program.peakBytes() }
  })
  const shared = { row: "terminal", runs }
  const target = (limit: number): Target => ({ kind: "figure", limit })
  return [
    line({
      ...{ ...shared, title: "terminal: session of 5,000 parts shown", unit: "time", target: target(300) },
      figure: ({ ms }) => ms,
    }),
    line({
      ...{ ...shared, title: "terminal: memory of that", unit: "size", target: target(150e6) },
      figure: ({ bytes }) => bytes,
    }),
  ]
}

function start(
  subject: Subject,
  { home, url, session }: { home: string; url: string; session?: string },
): Promise<PtyProgram> {
  const place: Place = { directory: home, home, url, port: Number(new URL(url).port), prompt: "" }
  return startOnPty(launch(subject, place, session), place)
}

function launch(subject: Subject, place: Place, session: string | undefined): Launch {
  const found = subject.terminal?.(place, session) ?? subject.about?.("--version")
  if (!found) throw new Error(`${subject.name} has no interactive terminal`)
  return found
}

function interactive({ subjects }: Bench): Subject[] {
  return subjects.filter(({ terminal }) => terminal)
}

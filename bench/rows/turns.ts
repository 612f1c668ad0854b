import { gapMs, type Row } from "../bench.ts"
import { line, type Runs } from "../line.ts"
import type { Scenario, Trace } from "../run-subject.ts"
import { median } from "../statistics.ts"

const turns = 100

/**
 * Scenario with a hundred turns and one small `read` in each. Each turn reads another file, because repetitions would
 * count as a loop.
 */
const scenario: Scenario = {
  files: Object.fromEntries(Array.from({ length: turns }, (_, turn) => [name(turn), text(turn)])),
  replies: (tools, path) => [
    ...Array.from({ length: turns }, (_, turn) => ({ calls: [tools.read(path(name(turn)))] })),
    { text: "Done." },
  ],
  async check({ requests }) {
    const last = JSON.stringify(requests.at(-1)?.body)
    return last.includes(marker(turns - 1)) && last.includes(marker(0))
      ? undefined
      : "the model did not receive the files"
  },
}

/** Measures the cost of a turn, its growth during the conversation, and the total. */
export const turnsRow: Row = {
  id: "turns",
  async measure(bench) {
    const runs = await bench.compare(scenario, { runs: 21 })
    return [
      line({
        row: "turns",
        title: "answer to next request, 100 read turns",
        unit: "time",
        runs,
        figure: (trace) => median(gaps(trace)),
        target: { kind: "ratio", limit: 3.5, of: "floor" },
      }),
      {
        ...line({
          row: "turns",
          title: "last ten turns against turns 41 to 50",
          unit: "ratio",
          runs,
          figure: (trace) => lastTenAgainst(trace, 40),
          target: { kind: "ratio", limit: 1.2, of: "floor" },
        }),
        details: [sinceTheStart(runs)],
      },
      line({
        row: "turns",
        title: "whole run of 100 turns",
        unit: "time",
        runs,
        figure: (trace) => trace.ended - trace.started,
        // The limit leaves room to keep the code simple.
        target: { kind: "ratio", limit: 3, of: "floor" },
      }),
      line({
        row: "turns",
        title: "peak memory, 100 turns",
        unit: "size",
        runs,
        figure: (trace) => trace.peakBytes,
        // Tackle may use 130 MB when the floor uses 95 MB.
        target: { kind: "ratio", limit: 130 / 95, of: "floor" },
      }),
    ]
  },
}

/** Returns the ratio of the last ten turns to the ten turns that start at `from`, counted from 0. */
function lastTenAgainst(trace: Trace, from: number): number {
  return median(gaps(trace).slice(-10)) / median(gaps(trace).slice(from, from + 10))
}

/**
 * Describes the growth since the first ten turns. It is only informative, because V8 still compiles the floor during
 * these turns, while Tackle is already compiled.
 */
function sinceTheStart(runs: Runs<Trace>): string {
  const figures = [...runs].flatMap(([name, traces]) =>
    Array.isArray(traces)
      ? [`${name} ${median(traces.map((trace) => lastTenAgainst(trace, 0))).toFixed(2)}`]
      : [],
  )
  return `last ten turns against the first ten: ${figures.join(", ")}`
}

function gaps(trace: Trace): number[] {
  return Array.from({ length: turns }, (_, turn) => gapMs(trace, turn))
}

function name(turn: number): string {
  return `note-${turn}.txt`
}

function marker(turn: number): string {
  return `This is note ${turn} of the hundred.`
}

function text(turn: number): string {
  return `${marker(turn)}\n${"It has a few lines that say little.\n".repeat(8)}`
}

import { gapMs, type Row } from "../bench.ts"
import { line } from "../line.ts"
import type { Scenario, Trace } from "../run-subject.ts"
import { median } from "../statistics.ts"

/** Number of turns. Each has at least two parts, so the session ends with more than a thousand. */
const turns = 500
/** Number of turns to compare at each end. */
const ends = 50

/** Scenario with short calls, so that the number of calls grows faster than the bytes that the model receives. */
const scenario: Scenario = {
  files: Object.fromEntries(Array.from({ length: turns }, (_, turn) => [`${turn}.txt`, `${turn}\n`])),
  replies: (tools, path) => [
    ...Array.from({ length: turns }, (_, turn) => ({ calls: [tools.read(path(`${turn}.txt`))] })),
    { text: "Done." },
  ],
}

/** Measures how the engine's time between two turns grows. The floor sends the same requests and stores nothing. */
export const longRow: Row = {
  id: "long",
  async measure(bench) {
    const runs = await bench.compare(scenario, { runs: 5 })
    return [
      line({
        row: "long",
        title: `last ${ends} turns against first ${ends}, ${turns} turns`,
        unit: "ratio",
        runs,
        figure: (trace) => growth(trace),
        target: { kind: "ratio", limit: 1.2, of: "floor" },
      }),
    ]
  },
}

function growth(trace: Trace): number {
  const gaps = Array.from({ length: turns }, (_, turn) => gapMs(trace, turn))
  return median(gaps.slice(-ends)) / median(gaps.slice(0, ends))
}

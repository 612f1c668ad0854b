import { gapMs, type Row } from "../bench.ts"
import { line } from "../line.ts"
import type { Scenario, Trace } from "../run-subject.ts"
import { median } from "../statistics.ts"

/** Two parts and more a turn: above a thousand at the end. */
const turns = 500
/** Turns at each end that are set against each other. */
const ends = 50

/** Short calls, so that what grows is their number and hardly the bytes that go to the model. */
const scenario: Scenario = {
  files: Object.fromEntries(Array.from({ length: turns }, (_, turn) => [`${turn}.txt`, `${turn}\n`])),
  replies: (tools, path) => [
    ...Array.from({ length: turns }, (_, turn) => ({ calls: [tools.read(path(`${turn}.txt`))] })),
    { text: "Done." },
  ],
}

/** Whether what the engine itself takes between two turns grows with the session: the floor sends as much and keeps nothing. */
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

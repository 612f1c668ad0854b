import { gapMs, type Row } from "../bench.ts"
import { line } from "../line.ts"
import type { Scenario } from "../run-subject.ts"

const numbers = [1, 2, 3, 4, 5, 6, 7, 8]
const sleepMs = 1000

/** Scenario with different calls, because eight equal calls would count as a loop. */
const scenario: Scenario = {
  replies: (tools) => [
    { calls: numbers.map((number) => tools.bash(`sleep 1; printf 'rested-%s\\n' ${number}`)) },
    { text: "Done." },
  ],
  async check({ requests }) {
    const last = JSON.stringify(requests.at(-1)?.body)
    return numbers.every((number) => last.includes(`rested-${number}`))
      ? undefined
      : "the model did not receive every result"
  },
}

/** Measures eight calls of one answer that can run in parallel. */
export const parallelRow: Row = {
  id: "parallel",
  async measure(bench) {
    const runs = await bench.compare(scenario, { runs: 9 })
    return [
      line({
        row: "parallel",
        title: "eight sleep 1 in one answer",
        unit: "time",
        runs,
        figure: (trace) => gapMs(trace, 0),
        target: { kind: "figure", limit: sleepMs + 100 * (await bench.slowness()) },
      }),
    ]
  },
}

import { gapMs, type Row } from "../bench.ts"
import { diskMs } from "../disk.ts"
import { line } from "../line.ts"
import type { Scenario } from "../run-subject.ts"

const bytes = 500_000_000
const text = "one of many lines that nobody is ever going to read"

const scenario: Scenario = {
  replies: (tools) => [{ calls: [tools.bash(`yes '${text}' | head -c ${bytes}`)] }, { text: "Done." }],
  async check({ requests }) {
    const next = requests.at(-1)
    // Once or twice it stands there as part of the command.
    if (JSON.stringify(next?.body).split(text).length < 10) return "the output did not come back"
    return (next?.bytes ?? 0) < 2_000_000 ? undefined : "the output came back uncut"
  },
}

/** One `bash` call that writes 500 MB. */
export const outputRow: Row = {
  id: "output",
  async measure(bench) {
    const runs = await bench.compare(scenario, { runs: 5 })
    return [
      line({
        row: "output",
        title: "500 MB of bash output, time",
        unit: "time",
        runs,
        figure: (trace) => gapMs(trace, 0),
        // Nothing of the output is lost, so the disk's own time comes on top.
        target: {
          kind: "figure",
          limit: 900 * (await bench.slowness()) + (await diskMs(bytes)),
          note: "0.9 s on the machine of the targets, and the time of this disk for the bytes alone",
        },
      }),
      line({
        row: "output",
        title: "500 MB of bash output, peak memory",
        unit: "size",
        runs,
        figure: (trace) => trace.peakBytes,
        target: { kind: "figure", limit: 130e6 },
      }),
    ]
  },
}

import { type Bench, gapMs, type Row, runLimitMs } from "../bench.ts"
import { diskMs } from "../disk.ts"
import { line, type Runs } from "../line.ts"
import { runSubject, type Scenario, type Trace } from "../run-subject.ts"
import { median } from "../statistics.ts"

const bytes = 500_000_000
const text = "one of many lines of output that will never be read"

const scenario: Scenario = {
  replies: (tools) => [{ calls: [tools.bash(`yes '${text}' | head -c ${bytes}`)] }, { text: "Done." }],
  async check({ requests }) {
    const next = requests.at(-1)
    // The command itself contains the text once or twice.
    if (JSON.stringify(next?.body).split(text).length < 10) return "the model did not receive the output"
    return (next?.bytes ?? 0) < 2_000_000 ? undefined : "the output was not truncated"
  },
}

/** Measures one `bash` call that writes 500 MB. */
export const outputRow: Row = {
  id: "output",
  async measure(bench) {
    const runs = await measureRuns(bench)
    const tackle = runs.get("tackle")
    const onDisk = Array.isArray(tackle) ? median(tackle.map((run) => run.diskMs ?? 0)) : 0
    return [
      line({
        row: "output",
        title: "500 MB of bash output, time",
        unit: "time",
        runs,
        figure: (trace) => gapMs(trace, 0),
        // Tackle keeps all output, so the disk's write time is added to the limit.
        target: {
          kind: "figure",
          limit: 900 * (await bench.slowness()) + onDisk,
          note: "0.9 s on the reference machine, plus the time that this disk takes to write the bytes, measured beside each run",
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

/**
 * Measures the disk alone, alternately before and after a run of Tackle. The disk's time changes by a factor of ten
 * within seconds, and the first writer finds more free memory.
 */
function measureRuns(bench: Bench): Promise<Runs<Trace & { diskMs?: number }>> {
  let diskFirst = false
  return bench.alternate(bench.subjects, bench.count(5), async (subject, home) => {
    const run = () => runSubject(subject, scenario, { home, limitMs: runLimitMs })
    if (subject.name !== "tackle") return await run()
    diskFirst = !diskFirst
    const before = diskFirst ? await diskMs(bytes, home) : undefined
    const trace = await run()
    return { ...trace, diskMs: before ?? (await diskMs(bytes, home)) }
  })
}

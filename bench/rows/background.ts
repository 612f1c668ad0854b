import { gapMs, type Row } from "../bench.ts"
import { line } from "../line.ts"
import type { Scenario } from "../run-subject.ts"

const command = "sleep 20 & echo started"

const scenario: Scenario = {
  replies: (tools) => [{ calls: [tools.bash(command)] }, { text: "Done." }],
  async check({ subject, requests }) {
    // The conversation also contains the command, which includes the printed word.
    const rest = JSON.stringify(requests.at(-1)?.body).replaceAll("echo started", "")
    if (!rest.includes("started")) return "the model did not receive the output"
    return subject !== "tackle" || rest.includes("job_") ? undefined : "the result does not mention a job"
  },
}

/**
 * Measures a command that leaves a process behind. The call must end with the shell, not with the process that keeps
 * the pipe open.
 */
export const backgroundRow: Row = {
  id: "background",
  async measure(bench) {
    const runs = await bench.compare(scenario, { runs: 5 })
    return [
      line({
        row: "background",
        title: "sleep 20 & echo started",
        unit: "time",
        runs,
        figure: (trace) => gapMs(trace, 0),
        target: { kind: "figure", limit: 150 * (await bench.slowness()) },
      }),
    ]
  },
}

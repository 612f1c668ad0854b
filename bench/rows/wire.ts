import type { Row } from "../bench.ts"
import { line } from "../line.ts"

/** What the model is sent before the person's first word counts: system prompt and every default tool. */
export const wireRow: Row = {
  id: "wire",
  async measure(bench) {
    const runs = await bench.compare({ replies: () => [{ text: "Done." }] }, { runs: 1 })
    return [
      line({
        row: "wire",
        title: "first request on the wire",
        unit: "size",
        runs,
        figure: (trace) => trace.requests[0]?.bytes ?? Number.NaN,
        target: { kind: "figure", limit: 18_000 },
      }),
    ]
  },
}

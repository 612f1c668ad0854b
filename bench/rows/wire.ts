import type { Row } from "../bench.ts"
import { line } from "../line.ts"

/** Measures the size of the request before the user's text: the system prompt and all default tools. */
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
        target: { kind: "figure", limit: 14_000 },
      }),
    ]
  },
}

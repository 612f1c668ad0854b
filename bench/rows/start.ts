import { type Row, startMs } from "../bench.ts"
import { line } from "../line.ts"

/** Measures one prompt that the model answers immediately with text. */
export const startRow: Row = {
  id: "start",
  async measure(bench) {
    const runs = await bench.compare({ replies: () => [{ text: "Done." }] }, { runs: 15 })
    return [
      line({
        row: "start",
        title: "start to first model request",
        unit: "time",
        runs,
        figure: startMs,
        target: { kind: "ratio", limit: 2, of: "floor" },
      }),
      line({
        row: "start",
        title: "peak memory, one prompt",
        unit: "size",
        runs,
        figure: (trace) => trace.peakBytes,
        // Tackle may use 95 MB when the floor uses 61 MB.
        target: { kind: "ratio", limit: 95 / 61, of: "floor" },
      }),
    ]
  },
}

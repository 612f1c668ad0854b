import { type Bench, type Row, streamedCallMs } from "../bench.ts"
import { type Line, line } from "../line.ts"
import type { Scenario, Trace } from "../run-subject.ts"
import { doStream } from "../subjects.ts"

const small = 100_000
const large = 1_000_000

/** Measures one `write` call whose arguments arrive in 16-character pieces. */
export const writeRow: Row = {
  id: "write",
  async measure(bench) {
    const [first, second] = [await stream(bench, small, 7), await stream(bench, large, 3)]
    return [
      line({
        row: "write",
        title: "100 KB write in 16-byte pieces",
        unit: "time",
        runs: first,
        figure: streamedCallMs,
        target: { kind: "ratio", limit: 1.3, of: doStream.name },
      }),
      largeLine(first, second),
    ]
  },
}

function stream(bench: Bench, size: number, runs: number) {
  return bench.compare(scenario(size), { runs, extra: [doStream] })
}

/**
 * Returns the line of the large write, compared with Tackle's time for the small write. Ten times the bytes may take
 * only slightly more than ten times as long.
 */
function largeLine(first: Map<string, Trace[] | string>, second: Map<string, Trace[] | string>): Line {
  const own = "its 100 KB"
  return line({
    row: "write",
    title: "1 MB write in 16-byte pieces",
    unit: "time",
    runs: new Map([...second, [own, first.get("tackle") ?? "not measured"]]),
    figure: streamedCallMs,
    target: { kind: "ratio", limit: 11, of: own },
  })
}

function scenario(size: number): Scenario {
  const content = "const answer = 42 // and a few words more\n".repeat(size / 41 + 1).slice(0, size)
  return {
    replies: (tools, path) => [
      { calls: [tools.write(path("made.ts"), content)], pieceSize: 16 },
      { text: "Done." },
    ],
    check: async ({ read }) =>
      (await read("made.ts")) === content ? undefined : "the file does not have the written content",
  }
}

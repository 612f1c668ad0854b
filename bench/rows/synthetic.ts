import { isDeepStrictEqual } from "node:util"
import { type CorpusCase, corpora, expected, readPieces, summary } from "../../test/synthetic/corpus.ts"
import type { Row } from "../bench.ts"
import { line } from "../line.ts"

/** Number of characters per streamed piece. */
const pieceLength = 4

/** Sets of texts with their titles in the table. */
const sets = [
  { cases: corpora.synthetic, title: "calls in text" },
  { cases: corpora["model-texts"], title: "calls in models' own forms" },
]

/**
 * Measures the percentage of corpus texts that are read correctly: the remaining text, the calls with their input, and
 * the malformed calls. Each set and dialect has one line.
 */
export const syntheticRow: Row = {
  id: "synthetic",
  async measure(bench) {
    const tackle = bench.subjects.filter(({ name }) => name === "tackle")
    const parts = sets.flatMap(({ cases, title }) =>
      [...Map.groupBy(cases, ({ dialect }) => dialect)].map(([dialect, entries]) => ({
        title: `${title}: ${dialect}, ${entries.length} texts read correctly`,
        cases: entries,
      })),
    )
    return Promise.all(
      parts.map(async ({ title, cases }) =>
        line({
          row: "synthetic",
          title,
          unit: "percent",
          runs: await bench.alternate(tackle, 1, async () => percentCorrect(cases)),
          figure: (percent) => percent,
          target: { kind: "least", limit: 99 },
        }),
      ),
    )
  },
}

function percentCorrect(cases: readonly CorpusCase[]): number {
  const right = cases.filter((entry) =>
    isDeepStrictEqual(summary(readPieces(entry, inPieces(entry.text))), expected(entry)),
  )
  return (100 * right.length) / cases.length
}

function inPieces(text: string): string[] {
  return text.match(new RegExp(`[\\s\\S]{1,${pieceLength}}`, "g")) ?? []
}

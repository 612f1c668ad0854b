import { isDeepStrictEqual } from "node:util"
import { type CorpusCase, corpora, expected, readPieces, summary } from "../../test/synthetic/corpus.ts"
import type { Row } from "../bench.ts"
import { line } from "../line.ts"

/** Characters in a piece, as a server streams them. */
const pieceLength = 4

/** The sets of texts, and what each is called in the table. */
const sets = [
  { cases: corpora.synthetic, title: "calls in text" },
  { cases: corpora["model-texts"], title: "calls in models' own forms" },
]

/**
 * How many of the corpus' texts are read as they were meant: the text that stays, the calls with their inputs, and what
 * is no call. Each set by itself, by the dialect that the model was told.
 */
export const syntheticRow: Row = {
  id: "synthetic",
  async measure(bench) {
    const tackle = bench.subjects.filter(({ name }) => name === "tackle")
    const parts = sets.flatMap(({ cases, title }) =>
      [...Map.groupBy(cases, ({ dialect }) => dialect)].map(([dialect, told]) => ({
        title: `${title}: ${dialect}, ${told.length} texts read right`,
        cases: told,
      })),
    )
    return Promise.all(
      parts.map(async ({ title, cases }) =>
        line({
          row: "synthetic",
          title,
          unit: "percent",
          runs: await bench.alternate(tackle, 1, async () => percentRight(cases)),
          figure: (percent) => percent,
          target: { kind: "least", limit: 99 },
        }),
      ),
    )
  },
}

function percentRight(cases: readonly CorpusCase[]): number {
  const right = cases.filter((entry) =>
    isDeepStrictEqual(summary(readPieces(entry, inPieces(entry.text))), expected(entry)),
  )
  return (100 * right.length) / cases.length
}

function inPieces(text: string): string[] {
  return text.match(new RegExp(`[\\s\\S]{1,${pieceLength}}`, "g")) ?? []
}

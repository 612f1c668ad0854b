import { isDeepStrictEqual } from "node:util"
import { corpus, expected, readPieces, summary } from "../../test/model/synthetic/corpus.ts"
import type { Row } from "../bench.ts"
import { line } from "../line.ts"

/** Characters in a piece, as a server streams them. */
const pieceLength = 4

/**
 * How many of the corpus' texts are read as they were meant: the text that stays, the calls with their inputs, and what
 * is no call. By the dialect that the model was told.
 */
export const syntheticRow: Row = {
  id: "synthetic",
  async measure(bench) {
    const tackle = bench.subjects.filter(({ name }) => name === "tackle")
    const dialects = [...new Set(corpus.map(({ dialect }) => dialect))]
    return Promise.all(
      dialects.map(async (dialect) => {
        const cases = corpus.filter((entry) => entry.dialect === dialect)
        const runs = await bench.alternate(tackle, 1, async () => {
          const right = cases.filter((entry) =>
            isDeepStrictEqual(summary(readPieces(entry, inPieces(entry.text))), expected(entry)),
          )
          return (100 * right.length) / cases.length
        })
        return line({
          row: "synthetic",
          title: `calls in text: ${dialect}, ${cases.length} texts read right`,
          unit: "percent",
          runs,
          figure: (percent) => percent,
          target: { kind: "least", limit: 99 },
        })
      }),
    )
  },
}

function inPieces(text: string): string[] {
  return text.match(new RegExp(`[\\s\\S]{1,${pieceLength}}`, "g")) ?? []
}

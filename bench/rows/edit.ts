import { dirname, join } from "node:path"
import type { Row } from "../bench.ts"
import type { BentEdit } from "../edit-set/draft.ts"
import { createRandom, editsOfCode, editsOfHistory, editsOfVersions } from "../edit-set/edits.ts"
import { bendEach, bendMixed, measureEdits, type Tally, total } from "../edit-set/measure.ts"
import type { Line } from "../line.ts"

const repository = dirname(dirname(import.meta.dirname))
/** Seed that was not used while the matching was developed. */
const seed = 52_901
const each = 60
/** Number of edits with which other agents were measured. */
const mixedCount = 132

/** Measures how many real edits the `edit` tool applies after they are bent as models bend them. Starts no process. */
export const editRow: Row = {
  id: "edit",
  async measure(bench) {
    const modules = join(repository, "node_modules")
    const sources = {
      history: editsOfHistory(repository, createRandom(seed)),
      "real code": editsOfCode(modules, 1_500, createRandom(seed)),
    }
    const released = editsOfVersions(modules, createRandom(seed))
    return [
      ...Object.entries(sources).flatMap(([source, edits]) =>
        sourceLines(source, bendEach({ edits, each: bench.count(each), seed })),
      ),
      ...sourceLines(
        "releases",
        bendMixed({ edits: released, count: mixedCount, random: createRandom(seed) }),
      ),
    ]
  },
}

function sourceLines(source: string, bents: readonly BentEdit[]): Line[] {
  const tallies = measureEdits(bents)
  const { right, refused, wrong } = total(tallies.values())
  const share = (refused + wrong) / Math.max(1, right + refused + wrong)
  const kinds = [...tallies].map(([kind, tally]) => `  ${kind.padEnd(56)}${counts(tally)}`)
  const target = { kind: "figure", limit: 0.09 } as const
  const none = { kind: "figure", limit: 0 } as const
  return [
    {
      row: "edit",
      title: `bent edits of ${source}, not applied`,
      unit: "ratio",
      figures: { tackle: share },
      target,
      result: { value: share, ok: share <= target.limit },
    },
    {
      row: "edit",
      title: `bent edits of ${source}, applied wrongly`,
      unit: "count",
      figures: { tackle: wrong },
      target: none,
      result: { value: wrong, ok: wrong <= none.limit },
      details: [`${`${source}:`.padEnd(58)}right  refused    wrong`, ...kinds],
    },
  ]
}

function counts({ right, refused, wrong }: Tally): string {
  return [right, refused, wrong].map((number) => String(number).padStart(7)).join("  ")
}

import { dirname, join } from "node:path"
import type { Row } from "../bench.ts"
import { measureEdits, type Tally, total } from "../edit-set/measure.ts"
import { measureMixed } from "../edit-set/mixed.ts"
import { createRandom } from "../edit-set/random.ts"
import type { RealEdit } from "../edit-set/real-edit.ts"
import { editsOfHistory } from "../edit-set/sources.ts"
import { editsOfCode } from "../edit-set/synthesised.ts"
import { editsOfVersions } from "../edit-set/versions.ts"
import type { Line } from "../line.ts"

const repository = dirname(dirname(import.meta.dirname))
/** Not one of those that the matching was made with. */
const seed = 52_901
const each = 60
/** As many as other agents were measured with. */
const mixedCount = 132

/** Real edits, bent as models bend them, done by what the `edit` tool does them with. No process, no other subject. */
export const editRow: Row = {
  id: "edit",
  async measure(bench) {
    const modules = join(repository, "node_modules")
    const released = { edits: editsOfVersions(modules, createRandom(seed)), random: createRandom(seed) }
    const sources: [string, RealEdit[]][] = [
      ["history", editsOfHistory(repository, createRandom(seed))],
      // Of its own, so that the next commit does not pick others.
      ["real code", editsOfCode(modules, 1_500, createRandom(seed))],
    ]
    return [
      ...sources.flatMap(([source, edits]) =>
        sourceLines(source, measureEdits({ edits, each: bench.count(each), seed })),
      ),
      ...sourceLines("releases", measureMixed({ ...released, count: mixedCount })),
    ]
  },
}

function sourceLines(source: string, tallies: ReadonlyMap<string, Tally>): Line[] {
  const { right, refused, wrong } = total(tallies.values())
  const share = (refused + wrong) / Math.max(1, right + refused + wrong)
  const kinds = [...tallies].map(([kind, tally]) => `  ${kind.padEnd(56)}${counts(tally)}`)
  const target = { kind: "figure", limit: 0.09 } as const
  const none = { kind: "figure", limit: 0 } as const
  return [
    {
      row: "edit",
      title: `bent edits of ${source}, not done right`,
      unit: "ratio",
      figures: { tackle: share },
      target,
      result: { value: share, ok: share <= target.limit },
    },
    {
      row: "edit",
      title: `bent edits of ${source}, done wrong`,
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

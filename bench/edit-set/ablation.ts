/**
 * Turns off each edit strategy and decoration, and prints the share of all bent edits that only this strategy recovers:
 * `node bench/edit-set/ablation.ts [edits of each kind, default 60]`.
 */
import { dirname, join } from "node:path"
import { createRandom, editsOfCode, editsOfHistory, editsOfVersions } from "./edits.ts"
import { bendEach, judge } from "./measure.ts"

const each = Number(process.argv[2] ?? 60)
const seed = 52_901
const repository = dirname(dirname(import.meta.dirname))
const modules = join(repository, "node_modules")

const bents = [
  editsOfHistory(repository, createRandom(seed)),
  editsOfCode(modules, 1_500, createRandom(seed)),
  editsOfVersions(modules, createRandom(seed)),
].flatMap((edits) => bendEach({ edits, each, seed }))
const verdicts = bents.map((bent) => judge(bent))

/** Strategies and decorations that are turned off together, by title. */
const groups: Record<string, readonly string[]> = {
  "no strategy but exact": [
    "line-endings",
    "look-alikes",
    "normalized-lines",
    "block-anchors",
    "left-out-lines",
  ],
  "the four escape forms": ["escapes", "escaped-quotes", "escaped-line-ends", "doubled-backslashes"],
}
const single = [
  ...["exact", "line-endings", "look-alikes", "normalized-lines", "block-anchors", "left-out-lines"],
  ...["fence", "line-numbers", "blank-edges", "entities"],
  ...["escapes", "escaped-quotes", "escaped-line-ends", "doubled-backslashes"],
]

const counts = { right: 0, refused: 0, wrong: 0 }
for (const verdict of verdicts) counts[verdict] += 1
console.log(`${bents.length} bent edits: ${JSON.stringify(counts)}`)
console.log(`${"without".padEnd(24)}${"lost".padStart(8)}${"wrong".padStart(8)}`)
for (const [name, off] of [...single.map((name) => [name, [name]] as const), ...Object.entries(groups)]) {
  const without = new Set(off)
  let [lost, wrong] = [0, 0]
  for (const [index, bent] of bents.entries()) {
    const verdict = judge(bent, without)
    if (verdicts[index] === "right" && verdict !== "right") lost += 1
    if (verdicts[index] !== "wrong" && verdict === "wrong") wrong += 1
  }
  const share = `${((100 * lost) / bents.length).toFixed(2)} %`
  console.log(`${name.padEnd(24)}${share.padStart(8)}${String(wrong).padStart(8)}`)
}

import { globSync } from "node:fs"
import { mkdir, readFile, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { checkRequest } from "../../src/permission/check.ts"
import type { Scope } from "../../src/permission/request.ts"
import { defaultRules } from "../../src/permission/rules.ts"
import type { Bench, Row } from "../bench.ts"
import { hostileTexts } from "../hostile-texts.ts"
import { line } from "../line.ts"
import { runProcess } from "../run-subject.ts"

/** Minimum number of cases per run of the command, so that its startup time matters little. */
const manyCases = 5_000
const texts = 10_000

/** Measures the speed of rule tests and the longest time for one decision. */
export const permissionRow: Row = {
  id: "permission",
  measure: async (bench) => [await casesLine(bench), await verdictLine(bench)],
}

/** Measures several runs of `permission test` on the test corpus. */
async function casesLine(bench: Bench) {
  const files = globSync(join(import.meta.dirname, "../../test/corpus/permission/*.jsonl"))
  const corpus = (await Promise.all(files.map((file) => readFile(file, "utf8"))))
    .join("")
    .trimEnd()
    .split("\n")
  const cases = Array.from({ length: Math.ceil(manyCases / corpus.length) }, () => corpus).flat()
  const runs = await bench.alternate(tackleOf(bench), bench.count(5), async (subject, home) => {
    await mkdir(home, { recursive: true })
    const file = join(home, "cases.jsonl")
    await writeFile(file, cases.join("\n"))
    const launch = subject.about?.("--version")
    if (!launch) throw new Error(`${subject.name} has no command`)
    const args = [...launch.args.slice(0, -1), "permission", "test", file]
    return runProcess({ ...launch, args }, { home, directory: home, limitMs: 60_000 })
  })
  return line({
    row: "permission",
    title: "1,000 cases of permission test",
    unit: "time",
    runs,
    figure: ({ started, ended }) => ((ended - started) / cases.length) * 1_000,
    // Corresponds to two thousand cases per second.
    target: { kind: "figure", limit: 500 * (await bench.slowness()) },
  })
}

/** Measures the slowest of many decisions on random texts, after the parser is loaded. */
async function verdictLine(bench: Bench) {
  const policy = { layers: [{ name: "defaults", rules: defaultRules() }] } as const
  const scope: Scope = { directory: "/w", worktree: "/w", policy: () => policy, own: [] }
  const judge = (text: string) => checkRequest({ permission: "bash", patterns: [text] }, scope, "/h")
  const runs = await bench.alternate(tackleOf(bench), bench.count(3), async () => {
    let slowest = 0
    let count = 0
    for (const text of hostileTexts(1)) {
      const started = performance.now()
      await judge(text)
      if (count > 0) slowest = Math.max(slowest, performance.now() - started)
      count += 1
      if (count > texts) break
    }
    return slowest
  })
  return line({
    row: "permission",
    title: "slowest verdict of 10,000 hostile texts",
    unit: "time",
    runs,
    figure: (slowest) => slowest,
    target: { kind: "figure", limit: 50 * (await bench.slowness()) },
  })
}

function tackleOf(bench: Bench) {
  return bench.subjects.filter(({ name }) => name === "tackle")
}

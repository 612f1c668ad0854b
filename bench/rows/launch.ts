import { mkdir } from "node:fs/promises"
import type { Bench, Row } from "../bench.ts"
import { line } from "../line.ts"
import { runProcess } from "../run-subject.ts"

/** Measures commands without a model against an empty Node program. */
export const launchRow: Row = {
  id: "launch",
  measure: async (bench) => [await flag(bench, "--version"), await flag(bench, "--help")],
}

async function flag(bench: Bench, name: "--version" | "--help") {
  const subjects = bench.subjects.filter((subject) => subject.about)
  const runs = await bench.alternate(subjects, bench.count(21), async (subject, home) => {
    await mkdir(home, { recursive: true })
    const launch = subject.about?.(name)
    if (!launch) throw new Error(`${subject.name} has no ${name}`)
    return runProcess(launch, { home, directory: home, limitMs: 20_000 })
  })
  return line({
    row: "launch",
    title: `${name} (floor: bare node)`,
    unit: "time",
    runs,
    figure: ({ started, ended }) => ended - started,
    target: { kind: "ratio", limit: 1.5, of: "floor" },
  })
}

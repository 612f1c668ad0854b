import { mkdir, writeFile } from "node:fs/promises"
import { arch, cpus, platform } from "node:os"
import { dirname, join } from "node:path"
import { parseArgs } from "node:util"
import { createBench, type Row } from "./bench.ts"
import { chart } from "./chart.ts"
import type { Line } from "./line.ts"
import { findPeers } from "./peers/find.ts"
import { isolate } from "./peers/isolate.ts"
import { backgroundRow } from "./rows/background.ts"
import { editRow } from "./rows/edit.ts"
import { launchRow } from "./rows/launch.ts"
import { longRow } from "./rows/long.ts"
import { outputRow } from "./rows/output.ts"
import { parallelRow } from "./rows/parallel.ts"
import { permissionRow } from "./rows/permission.ts"
import { serviceRow } from "./rows/service.ts"
import { startRow } from "./rows/start.ts"
import { syntheticRow } from "./rows/synthetic.ts"
import { terminalRow } from "./rows/terminal.ts"
import { turnsRow } from "./rows/turns.ts"
import { wireRow } from "./rows/wire.ts"
import { writeRow } from "./rows/write.ts"
import { floor, tackle } from "./subjects.ts"
import { table } from "./table.ts"

const rows: Row[] = [
  startRow,
  turnsRow,
  longRow,
  outputRow,
  writeRow,
  backgroundRow,
  parallelRow,
  wireRow,
  launchRow,
  permissionRow,
  syntheticRow,
  editRow,
  serviceRow,
  terminalRow,
]

const help = `npm run bench -- [options]

Measures Tackle against a floor, a bare fetch loop that does the same work, in the same run.

  --rows a,b       measure only these rows: ${rows.map((row) => row.id).join(", ")}
  --runs N         runs for each subject and row (default: depends on the row)
  --peers          also measure other agents that are on PATH or in TACKLE_BENCH_PEERS, a directory
                   with node_modules/.bin: opencode codex pi gemini qwen claude
  --tackle FILE    command to measure (default: bin/tackle); "none" measures only the floor
  --json FILE      also write the results to this file
  --help           print this help

If every row is measured, the results are written to bench/results/latest.json and latest.svg. The exit code is 0 if
Tackle and the floor complete every row, even if targets are missed, and 1 otherwise.
`

const repository = dirname(import.meta.dirname)
const { values } = parseArgs({
  options: {
    rows: { type: "string" },
    runs: { type: "string" },
    peers: { type: "boolean", default: false },
    tackle: { type: "string", default: join(repository, "bin/tackle") },
    json: { type: "string" },
    help: { type: "boolean", default: false },
  },
})

if (values.help) process.stdout.write(help)
else process.exitCode = values.peers ? await isolate(main) : await main()

async function main(): Promise<number> {
  const chosen = chosenRows(values.rows)
  const peers = values.peers ? await findPeers(process.env) : []
  const subjects = [floor, ...(values.tackle === "none" ? [] : [tackle(values.tackle)]), ...peers]
  const lines: Line[] = []
  for (const row of chosen) {
    const progress = (text: string) => showProgress(`${row.id}: ${text}`)
    lines.push(...(await row.measure(createBench({ subjects, runs: runCount(values.runs), progress }))))
  }
  showProgress("")
  process.stdout.write(`${table(lines, { colour: process.stdout.isTTY })}\n`)
  await store(lines, chosen.length === rows.length)
  const failed = lines.some((line) =>
    [line.figures.floor, line.figures.tackle].some((it) => typeof it === "string"),
  )
  return failed ? 1 : 0
}

function chosenRows(names: string | undefined): Row[] {
  if (names === undefined) return rows
  return names.split(",").map((name) => {
    const row = rows.find(({ id }) => id === name)
    if (!row) throw new Error(`Unknown row ${name}. Rows: ${rows.map(({ id }) => id).join(", ")}.`)
    return row
  })
}

function runCount(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const runs = Number(text)
  if (!Number.isInteger(runs) || runs < 1)
    throw new Error(`--runs must be a whole number of at least 1, not ${text}.`)
  return runs
}

async function store(lines: Line[], complete: boolean): Promise<void> {
  const machine = { node: process.version, platform: platform(), arch: arch(), cores: cpus().length }
  const json = `${JSON.stringify({ date: new Date().toISOString(), machine, lines }, undefined, 2)}\n`
  if (values.json) await writeFile(values.json, json)
  // A partial run must not overwrite the chart of all rows.
  if (!complete) return
  const directory = join(repository, "bench/results")
  await mkdir(directory, { recursive: true })
  await writeFile(join(directory, "latest.json"), json)
  await writeFile(join(directory, "latest.svg"), chart(lines, machine))
}

function showProgress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`)
}

import { existsSync, readFileSync } from "node:fs"
import { writeFile } from "node:fs/promises"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { isComplete } from "../runs.ts"
import { createMachine, until } from "./run-tackle.ts"
import { streamingScript } from "./streaming-script.ts"
import { hasTmux, openTerminal } from "./terminal.ts"

/** Number of streamed pieces. 100,000 with `npm run test:soak`: as many as in 20 minutes of work. */
const deltas = Number(process.env.TACKLE_SOAK_DELTAS ?? (isComplete ? 3_000 : 1_500))
const turns = Math.max(3, Math.round(deltas / 5_000))
const stepsPerTurn = 10

/**
 * Growth in bytes between the first and the last third of the turns. The engine keeps the session's messages for the next
 * request, and they grow by about 40 bytes per piece.
 */
const maxGrowth = 4e6 + 40 * deltas

/** Maximum size in bytes of the young generation, which V8 otherwise grows to 64 MB and rarely shrinks. */
const maxYoung = 16e6

interface HeapSizes {
  /** Size of the young generation, before garbage was collected. */
  young: number
  /** Size of all objects, after garbage was collected. */
  used: number
}

/** Collects garbage and appends {@link HeapSizes} to a file when the process receives SIGUSR2. */
const probe = `
  const { appendFileSync } = require("node:fs")
  const { isMainThread } = require("node:worker_threads")
  const { getHeapSpaceStatistics } = require("node:v8")
  if (isMainThread) process.on("SIGUSR2", () => {
    const young = getHeapSpaceStatistics().find(({ space_name }) => space_name === "new_space").space_size
    gc()
    const { heapUsed: used } = process.memoryUsage()
    appendFileSync(process.env.TACKLE_PROBE, JSON.stringify({ young, used }) + "\\n")
  })
`

describe.skipIf(!hasTmux)("streaming in the interactive terminal (needs tmux)", () => {
  test(`${deltas} streamed pieces do not grow the heap beyond the session`, {
    timeout: 60_000 + deltas * 10,
  }, async () => {
    const machine = await createMachine({
      script: (request) => {
        // The requests need not stay in memory.
        machine.server.requests.length = 0
        return script(request)
      },
      config: { sandbox: "off", permission: { "*": "allow" } },
    })
    const script = streamingScript({ deltas: Math.round(deltas / turns / stepsPerTurn), delayMs: 1 })
    const [preload, sizes] = [join(machine.home, "probe.cjs"), join(machine.home, "sizes")]
    await writeFile(preload, probe)
    const terminal = await openTerminal(machine, {
      NODE_OPTIONS: `--expose-gc --require ${preload}`,
      TACKLE_PROBE: sizes,
    })
    await terminal.tackle()
    await terminal.sees("test/m")
    const heap = (): HeapSizes[] =>
      existsSync(sizes)
        ? readFileSync(sizes, "utf8")
            .trim()
            .split("\n")
            .map((line) => JSON.parse(line))
        : []
    for (let turn = 1; turn <= turns; turn += 1) {
      await terminal.type(`turn ${turn}`)
      const [columns, rows] = turn % 2 === 1 ? [40, 12] : [80, 24]
      await terminal.sees("working")
      await terminal.resize(columns, rows)
      await until(
        `turn ${turn}`,
        async () => (await terminal.screen()).includes(`Turn ${turn} is done.`),
        300,
      )
      await terminal.terminate("SIGUSR2")
      await until("the size of the heap", () => heap().length === turn)
    }
    const third = Math.max(1, Math.floor(turns / 3))
    const used = heap().map((size) => size.used)
    const [early, late] = [median(used.slice(0, third)), median(used.slice(-third))]
    const young = Math.max(...heap().map((size) => size.young))
    console.log(JSON.stringify({ deltas, turns, early, late, young, heap: heap() }))
    expect(late - early).toBeLessThan(maxGrowth)
    expect(young).toBeLessThan(maxYoung)
    await terminal.resize(80, 24)
    await terminal.sees(new RegExp(`Turn ${turns} is done\\.\\s+─+\\s+─+\\s+build · test/m`))
    await terminal.press("C-d")
    await terminal.sees("[exit 0]")
  })
})

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}

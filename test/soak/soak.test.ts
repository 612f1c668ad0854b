import { execFile } from "node:child_process"
import { promisify } from "node:util"
import { expect, onTestFinished, test } from "vitest"
import { startModelServer } from "../../src/testing/model-server.ts"
import { temporaryProject } from "../../src/testing/project.ts"
import { type SoakReport, soakScript } from "./plan.ts"

/** Number of turns. 1,000 with `npm run test:soak`. */
const turns = Number(process.env.TACKLE_SOAK_TURNS ?? 60)

async function soak(): Promise<SoakReport> {
  const answer = soakScript()
  const server = await startModelServer({
    script(request) {
      // The requests of a thousand turns need not stay in memory.
      server.requests.length = 0
      return answer(request)
    },
  })
  onTestFinished(() => server.close())
  const project = await temporaryProject({ "long.txt": "a line of text\n".repeat(300) })
  onTestFinished(() => project.remove())
  const script = new URL("./engine.ts", import.meta.url).pathname
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ["--expose-gc", script, project.directory, server.url, String(turns)],
    { maxBuffer: 64 * 1024 * 1024, cwd: project.directory },
  )
  return JSON.parse(stdout) as SoakReport
}

test.skipIf(process.platform !== "linux")(
  `${turns} turns with aborts, retries and compactions do not grow memory, descriptors or processes`,
  { timeout: 60_000 + turns * 1_000 },
  async () => {
    const { heap, statuses, compactions, retries, before, during, after } = await soak()
    const rounds = Math.floor(turns / 10)
    expect(Object.keys(statuses).sort()).toEqual([
      "abort-answer interrupted",
      "abort-call interrupted",
      "command completed",
      "job completed",
      "question completed",
      "read completed",
      "retry completed",
      "talk completed",
      "task completed",
      "write completed",
    ])
    expect(statuses["retry completed"]).toBeGreaterThanOrEqual(rounds)
    expect(retries).toBeGreaterThanOrEqual(rounds)
    expect(compactions).toBeGreaterThanOrEqual(Math.floor(turns / 60))

    const third = Math.floor(heap.length / 3)
    const [early, late] = [median(heap.slice(0, third)), median(heap.slice(-third))]
    console.log(
      JSON.stringify({ early, late, compactions, retries, before, after, last: during.at(-1), heap }),
    )
    expect(late).toBeLessThan(early * 1.1)

    expect({ ...after, descriptors: 0 }).toEqual({ ...before, descriptors: 0 })
    expect(after.descriptors).toBeLessThanOrEqual(before.descriptors)
    const descriptors = during.map((held) => held.descriptors)
    expect(Math.max(...descriptors.slice(-third))).toBeLessThanOrEqual(
      Math.max(...descriptors.slice(0, third)) + 2,
    )
  },
)

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}

import { expect, test } from "vitest"
import { createMachine, endOf } from "./run-tackle.ts"

const usage = { input: 1_000, output: 50, cached: 600 }
const list = { name: "list", arguments: { path: "." } }

async function pricedMachine() {
  const machine = await createMachine({
    files: { "a.txt": "x\n" },
    script: ({ body }) =>
      body.messages.at(-1)?.role === "tool" ? { text: "Done.", usage } : { calls: [list], usage },
  })
  const { server } = machine
  const models = { m: { cost: { input: 3, output: 15, cache_read: 0.3 } } }
  const provider = { test: { options: { baseURL: server.url, apiKey: "k" }, models } }
  machine.env.TACKLE_CONFIG_CONTENT = JSON.stringify({ model: "test/m", provider })
  return machine
}

test("reports tokens and cost at the end of a run, in the session and in the statistics", async () => {
  const machine = await pricedMachine()
  const run = await machine.run(["run", "go"])
  expect(run.stderr).toContain("2000 + 100 tokens (1200 from the cache) · $0.0043\n")

  const shown = await machine.run(["session", "show"])
  expect(shown.stdout.match(/ {2}1000 \+ 50 tokens \(600 from the cache\) · \$0\.0021/g)).toHaveLength(2)
  expect(shown.stdout).toMatch(/total: 2000 \+ 100 tokens \(1200 from the cache\) · \$0\.0043\n$/)

  const stats = await machine.run(["stats"])
  expect(stats.stdout).toMatch(
    /^1 session · 1 prompt · 2000 \+ 100 tokens .* · \$0\.0043\n\ntest\/m {2}2 steps/,
  )
  expect(stats.stdout).toMatch(/\nlist {2}1 call {2}\d/)

  const json = JSON.parse((await machine.run(["stats", "--format", "json"])).stdout)
  expect(json).toMatchObject({
    sessions: 1,
    usage: { input: 800, cacheRead: 1_200, output: 100 },
    models: [{ model: "test/m", steps: 2 }],
    tools: [{ tool: "list", calls: 1, failed: 0 }],
  })

  const elsewhere = { cwd: machine.home }
  expect((await machine.run(["stats"], elsewhere)).stdout).toBe("No sessions yet.\n")
  expect((await machine.run(["stats", "--all"], elsewhere)).stdout).toContain("$0.0043")
})

test("stops a run with exit code 4 at --max-cost and --max-tokens, and rejects invalid amounts", async () => {
  const machine = await pricedMachine()
  const cost = await machine.run(["run", "--format", "json", "--max-cost", "0.002", "go"])
  expect(endOf(cost)).toMatchObject({ status: "limit", exitCode: 4 })
  const tokens = await machine.run(["run", "--max-tokens", "400", "go"])
  expect(tokens.code).toBe(4)
  expect(tokens.stderr).toContain("it reached its limit of 400 tokens (set by --max-tokens")
  for (const amount of ["0", "-1", "much", ""])
    expect((await machine.run(["run", "--max-cost", amount, "go"])).code).toBe(2)
})

import { expect, test } from "vitest"
import { createMachine, runDoctor } from "./run-tackle.ts"

test("names the agents in config show, with their origin", async () => {
  const machine = await createMachine({
    files: { ".tackle/agent/review.md": "---\ndescription: Reviews\n---\nReview." },
  })
  const { stdout } = await machine.run(["config", "show", "--trust"])
  expect(stdout).toMatch(/^Agents:\n {2}build \(built in\)\n/m)
  expect(stdout).toMatch(/^ {2}review \(.*\.tackle\/agent\/review\.md:\d+\)$/m)
  const json = JSON.parse((await machine.run(["config", "show", "--trust", "--json"])).stdout)
  expect(json.agents).toMatchObject([{ name: "review", source: { line: expect.any(Number) } }])
})

test("lists the configured providers in models, without their keys", async () => {
  const machine = await createMachine()
  const { stdout } = await machine.run(["models"])
  expect(stdout).toContain(`Configured providers:\n  test at ${machine.server.url}, 1 model in the config\n`)
  const json = await machine.run(["models", "--json"])
  expect(JSON.parse(json.stdout).providers).toEqual([{ id: "test", baseURL: machine.server.url, models: 1 }])
  expect(json.stdout).not.toContain("apiKey")
})

test("reports plugins and MCP servers in doctor, and an untrusted project once", async () => {
  const machine = await createMachine({
    files: { ".tackle/plugin/own.js": "export const Own = async () => ({})" },
    config: { mcp: { broken: { type: "local", command: ["false"] } } },
  })
  const found = async () => {
    const { stdout, stderr } = await runDoctor(machine, "--json")
    const findings: { check: string; status: string; detail: string }[] = JSON.parse(stdout).findings
    const named = (name: string) => findings.find(({ check }) => check === name)
    return { plugins: named("plugins"), servers: named("mcp servers"), sandbox: named("sandbox"), stderr }
  }
  const before = await found()
  expect(before.plugins).toMatchObject({ status: "warn", detail: ".tackle/plugin/own.js is not trusted" })
  expect(before.servers).toMatchObject({ status: "warn", detail: expect.stringMatching(/^broken: /) })
  expect(before.sandbox).toBeDefined()
  expect(before.stderr.match(/is not trusted in its current state/g)).toHaveLength(1)
  expect(before.stderr).not.toContain("broken")
  await machine.trust()
  expect((await found()).plugins).toMatchObject({ status: "ok", detail: ".tackle/plugin/own.js" })
})

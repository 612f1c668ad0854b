import { expect, test } from "vitest"
import { createMachine, eventsOf, only } from "./run-tackle.ts"

test("reports a model that cannot be used as configured as a config error, and creates no session", async () => {
  const machine = await createMachine({
    config: { provider: { nowhere: { models: { m: {} } }, foreign: { npm: "no-such-package" } } },
  })
  const tried: [string, RegExp][] = [
    ["anthropic/claude-x", /Anthropic needs an API key.*ANTHROPIC_API_KEY/],
    ["nowhere/m", /provider\.nowhere\.options\.baseURL is missing/],
    ["foreign/m", /no-such-package for provider\.foreign is not installed/],
    ["nobody/m", /The model nobody\/m is unknown/],
  ]
  for (const [model, message] of tried) {
    const run = await machine.run(["run", "-m", model, "hello"])
    expect([run.code, run.stdout]).toEqual([2, ""])
    expect(run.stderr).toMatch(message)
  }
  expect((await machine.run(["session", "list"])).stdout).toMatch(/No sessions yet/)
})

test("ends the run at once when the host does not exist, and names the key to check", async () => {
  const machine = await createMachine({
    config: { provider: { far: { options: { baseURL: "http://nosuch.invalid/v1" } } } },
  })
  const run = await machine.run(["run", "--format", "json", "-m", "far/m", "hello"])
  expect(run.code).toBe(1)
  const events = eventsOf(run)
  expect(only(events, "session.error")[0]?.error.message).toMatch(
    /nosuch\.invalid.*provider\.far\.options\.baseURL/,
  )
  expect(only(events, "part.updated").filter(({ part }) => part.type === "retry")).toEqual([])
})

test("shows with --verbose what a run does, and logs no message text", async () => {
  const machine = await createMachine({
    files: { "a.txt": "secret content\n" },
    script: [{ calls: [{ name: "read", arguments: { filePath: "a.txt" } }] }, { text: "A secret answer." }],
  })
  const run = await machine.run(["run", "--verbose", "--format", "json", "a secret wish"])
  for (const noted of [
    /run started/,
    /"reason":"tool-calls"/,
    /"tool":"read","status":"completed"/,
    /run ended/,
  ])
    expect(run.stderr).toMatch(noted)
  expect(run.stderr).not.toMatch(/secret/)
})

import { describe, expect, test } from "vitest"
import { createMachine } from "./run-tackle.ts"
import { hasTmux, openTerminal } from "./terminal.ts"

test.each([
  ["question", {}, {}, false],
  ["question", {}, { TACKLE_CLIENT: "app" }, true],
  ["question", {}, { TACKLE_CLIENT: "acp" }, false],
  ["batch", {}, {}, false],
  ["batch", { experimental: { batch_tool: true } }, {}, true],
  ["batch", {}, { TACKLE_EXPERIMENTAL: "1" }, true],
  ["batch", {}, { TACKLE_EXPERIMENTAL_BATCH_TOOL: "1" }, true],
])("offers %s with config %o and environment %o: %s", async (id, config, env, offered) => {
  const machine = await createMachine({ config })
  const { stdout } = await machine.run(["tool", "list", "--all", "--format", "json"], { env })
  const tool = JSON.parse(stdout).tools.find((entry: { id: string }) => entry.id === id)
  expect(tool.offered).toBe(offered)
  expect(tool.reason === undefined).toBe(offered)
})

const ask = {
  name: "question",
  arguments: {
    questions: [
      { question: "Which way?", header: "Way", options: [{ label: "left" }, { label: "right" }] },
      { question: "What else?", multiple: true, options: [{ label: "a" }, { label: "b" }] },
      { question: "Why?" },
    ],
  },
}
const script = [{ calls: [ask] }, { text: "Done." }]

test("offers no question tool in a run without a terminal", async () => {
  const machine = await createMachine({ script: [{ text: "Done." }] })
  await machine.run(["run", "go"], { env: { TACKLE_CLIENT: "app" } })
  const names = machine.server.requests[0]?.body.tools?.map((tool) => tool.function.name)
  expect(names).toContain("task")
  expect(names).not.toContain("question")
})

describe.skipIf(!hasTmux)("in a terminal (needs tmux)", () => {
  test("accepts one choice, several choices and an answer in the user's own words", async () => {
    const machine = await createMachine({ script })
    const terminal = await openTerminal(machine)
    await terminal.tackle("run", "go")
    expect(await terminal.sees(/left[\s\S]*right[\s\S]*something else…/)).toContain("Way: Which way?")
    await terminal.press("Down", "Enter")
    await terminal.sees(/What else\?[\s\S]*something else…/)
    await terminal.press("Space", "Down", "Space", "Enter")
    await terminal.sees("Why?")
    await terminal.type("because")
    await terminal.sees("[exit 0]")
    const result = machine.server.requests[1]?.body.messages.at(-1)?.content
    expect(result).toBe("Which way?\n→ right\n\nWhat else?\n→ a\n→ b\n\nWhy?\n→ because")
  })

  test("continues the run after Escape, and asks nothing under --auto", async () => {
    const machine = await createMachine({ script: [...script, { text: "Done." }] })
    const terminal = await openTerminal(machine)
    await terminal.tackle("run", "go")
    await terminal.sees("something else…")
    await terminal.press("Escape")
    await terminal.sees("[exit 0]")
    expect(machine.server.requests[1]?.body.messages.at(-1)?.content).toMatch(
      /^The user dismissed the question/,
    )
    await terminal.tackle("run", "--auto", "go")
    await terminal.sees("[exit 0]")
    const names = machine.server.requests[2]?.body.tools?.map((tool) => tool.function.name)
    expect(names).not.toContain("question")
  })
})

import { expect, test } from "vitest"
import { createMachine } from "./run-tackle.ts"
import { hasTmux, openTerminal } from "./terminal.ts"

const config = { experimental: { plan_mode: true } }

test.skipIf(!hasTmux)("shows the plan at a terminal before the question about it (needs tmux)", async () => {
  const machine = await createMachine({
    config,
    script: (request, index) => {
      const [, filePath = ""] =
        /Plan file[^:]*: (\S+?plan\.md)/.exec(JSON.stringify(request.body.messages)) ?? []
      if (index === 0) return { calls: [{ name: "plan_enter", arguments: {} }] }
      if (index === 1)
        return { calls: [{ name: "write", arguments: { filePath, content: "Tidy the cart.\n" } }] }
      if (index === 2) return { calls: [{ name: "plan_exit", arguments: {} }] }
      return { text: "Done." }
    },
  })
  const terminal = await openTerminal(machine)
  await terminal.tackle("run", "go")
  await terminal.sees(/Plan first\?[\s\S]*something else…/)
  await terminal.press("Enter")
  expect(await terminal.sees(/Carry out this plan\?[\s\S]*something else…/)).toContain("\nTidy the cart.\n")
  await terminal.press("Down", "Enter")
  await terminal.sees("[exit 0]")
  const told = machine.server.requests.at(-1)?.body.messages.at(-1)?.content
  expect(told).toMatch(/^The user did not approve the plan\. You are still in plan mode/)
})

test("offers no plan mode without a terminal", async () => {
  const machine = await createMachine({ config, script: [{ text: "Done." }] })
  await machine.run(["run", "go"])
  const names = machine.server.requests[0]?.body.tools?.map((tool) => tool.function.name)
  expect(names).not.toContain("plan_enter")
})

import { expect, test } from "vitest"
import { openExample, promptOf } from "./open-example.ts"

test("includes AGENTS.md and configured files at the start, and those of a folder with its first file", async () => {
  const machine = await openExample("instructions", {
    trusted: false,
    script: [{ calls: [{ name: "read", arguments: { filePath: "api/routes.txt" } }] }, { text: "Done." }],
  })
  await machine.run(["run", "add an endpoint for orders to api/routes.txt"])
  expect(promptOf(machine, 0)).toContain("Never touch `legacy/`")
  expect(promptOf(machine, 0)).toContain("Names of endpoints are plural")
  expect(promptOf(machine, 0)).not.toContain("Every endpoint has a line")
  expect(promptOf(machine, 1)).toContain("Every endpoint has a line")
})

test("config show lists the files as the page says", async () => {
  const machine = await openExample("instructions")
  const { stdout } = await machine.run(["config", "show"])
  expect(stdout).toContain("AGENTS.md")
  expect(stdout).toContain("docs/style.md")
})

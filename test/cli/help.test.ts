import { expect, test } from "vitest"
import { createMachine } from "./run-tackle.ts"

test("offers --trust only where the config and tools of a project count", async () => {
  const machine = await createMachine({ config: null })
  const offers = async (command: string) =>
    (await machine.run([...command.split(" "), "--help"])).stdout.includes("--trust")
  for (const command of ["run", "tool call", "permission check", "session import", "session compact"])
    expect(await offers(command), command).toBe(true)
  for (const way of ["list", "show", "export", "fork", "undo", "redo", "prune", "delete"])
    expect(await offers(`session ${way}`), way).toBe(false)
  for (const command of ["stats", "permission list", "permission revoke", "permission test"])
    expect(await offers(command), command).toBe(false)
  for (const command of ["auth logout", "mcp add", "trust"])
    expect(await offers(command), command).toBe(false)
})

test("starts no code of a trusted project in commands on stored data", async () => {
  const files = {
    ".tackle/plugin/noisy.mjs":
      'export const Noisy = async () => { console.error("plugin runs"); return {} }',
    ".tackle/tool/noisy.mjs": 'console.error("tool runs")\nexport default {}',
  }
  const machine = await createMachine({ files, script: [{ text: "one" }] })
  expect((await machine.run(["trust", "--yes"])).code).toBe(0)
  const { stderr } = await machine.run(["run", "x"])
  expect(stderr).toContain("plugin runs")
  expect(stderr).toContain("tool runs")
  for (const args of [["session", "list"], ["session", "show"], ["session", "fork"], ["stats"]])
    expect(await machine.run(args), args.join(" ")).toMatchObject({ code: 0, stderr: "" })
})

test("finds help by all words of a command, and reports an unknown command", async () => {
  const machine = await createMachine({ config: null })
  const check = await machine.run(["help", "models", "check"])
  expect(check).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Usage: tackle models check /) })
  expect((await machine.run(["help", "help"])).code).toBe(0)
  for (const [words, wrong, near] of [
    [["sesion"], "sesion", "session"],
    [["session", "lst"], "lst", "list"],
  ] as const) {
    const { code, stdout, stderr } = await machine.run(["help", ...words])
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" })
    expect(stderr).toMatch(new RegExp(`^tackle: unknown command '${wrong}'\n\\(Did you mean ${near}\\?\\)\n`))
  }
})

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
  for (const command of ["auth logout", "mcp add", "trust", "serve"])
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

/** Returns the names of the commands or flags that a help text lists. */
function listed(help: string, section: "Commands" | "Options"): string[] {
  const [, rows = ""] = new RegExp(`^${section}:\\n((?: .*\\n?)*)`, "m").exec(help) ?? []
  return [...rows.matchAll(/^ {2}(?:-\w, )?([a-z-]+)/gm)].map(([, name = ""]) => name)
}

test("shows in the help of each command an example that uses only existing commands and flags", async () => {
  const machine = await createMachine({ config: null })
  const helpOf = async (names: string[]) => (await machine.run([...names, "--help"])).stdout
  const missing: string[] = []
  const visit = async (names: string[]): Promise<void> => {
    const help = await helpOf(names)
    const name = ["tackle", ...names].join(" ")
    const examples = help.split("Examples:\n")[1]?.trimEnd().split("\n") ?? []
    if (names.length > 0 && !examples.some((line) => line.includes(name))) missing.push(name)
    const inner = listed(help, "Commands")
    const flags = listed(help, "Options")
    if (inner.length === 0)
      for (const line of examples) {
        const used = [...(line.split(" -- ")[0] ?? "").matchAll(/ (--[a-z-]+)/g)].map(([, flag = ""]) => flag)
        missing.push(...used.filter((flag) => !flags.includes(flag)).map((flag) => `${line}: ${flag}`))
      }
    await Promise.all(inner.map((next) => visit([...names, next])))
  }
  await visit([])
  expect(missing).toEqual([])
})

test("accepts --json as a short form of --format json", async () => {
  const machine = await createMachine()
  for (const command of [
    "session list",
    "tool list",
    "mcp list",
    "agent list",
    "models",
    "auth list",
    "stats",
  ]) {
    const { stdout } = await machine.run([...command.split(" "), "--json"])
    expect(() => JSON.parse(stdout), command).not.toThrow()
  }
})

import { readFileSync } from "node:fs"
import { join, resolve } from "node:path"
import type { Command } from "commander"
import { describe, expect, test } from "vitest"
import { createProgram } from "../../src/cli/program.ts"
import { createMachine } from "./run-tackle.ts"

test("starts no code of a trusted project in commands on stored data", async () => {
  const files = {
    ".tackle/plugin/noisy.mjs":
      'export const Noisy = async () => { console.error("plugin runs"); return {} }',
    ".tackle/tool/noisy.mjs": 'console.error("tool runs")\nexport default {}',
  }
  const machine = await createMachine({ files, script: [{ text: "one" }] })
  await machine.trust()
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

/** Returns the help of every command by its name, without starting a process for each. */
async function allHelp(): Promise<Map<string, string>> {
  const helps = new Map<string, string>()
  const program = await createProgram(["--help"], { all: true })
  const visit = (command: Command, names: readonly string[]): void => {
    const texts: string[] = []
    command
      .configureOutput({ ...command.configureOutput(), writeOut: (text) => texts.push(text) })
      .outputHelp()
    helps.set(names.join(" "), texts.join(""))
    for (const inner of command.commands) visit(inner, [...names, inner.name()])
  }
  visit(program, [])
  // A user opens it without a name.
  helps.delete("interactive")
  return helps
}

describe("the help of every command", async () => {
  const helps = await allHelp()

  test("is what the command prints", async () => {
    const machine = await createMachine({ config: null })
    for (const command of ["run", "session", "session export"]) {
      const { stdout } = await machine.run([...command.split(" "), "--help"])
      expect(helps.get(command), command).toBe(stdout)
    }
  })

  test("is reached from the list of all commands", () => {
    const names = [...helps.keys()].filter((name) => name !== "" && !/ |^help$/.test(name))
    expect(listed(helps.get("") ?? "", "Commands").sort()).toEqual(names.sort())
  })

  test("shows an example that uses only existing commands and flags", () => {
    const missing: string[] = []
    for (const [command, help] of helps) {
      const examples = help.split("Examples:\n")[1]?.trimEnd().split("\n") ?? []
      if (command !== "" && !examples.some((line) => line.includes(`tackle ${command}`)))
        missing.push(command)
      if (listed(help, "Commands").length > 0) continue
      const flags = listed(help, "Options")
      for (const line of examples) {
        const used = [...(line.split(" -- ")[0] ?? "").matchAll(/ (--[a-z-]+)/g)].map(([, flag = ""]) => flag)
        missing.push(...used.filter((flag) => !flags.includes(flag)).map((flag) => `${line}: ${flag}`))
      }
    }
    expect(helps.size).toBeGreaterThan(50)
    expect(missing).toEqual([])
  })

  test("offers --trust only where the config and tools of a project apply", () => {
    const offers = (command: string) => helps.get(command)?.includes("--trust")
    for (const command of ["run", "tool call", "permission check", "session import", "session compact"])
      expect(offers(command), command).toBe(true)
    for (const name of ["list", "show", "export", "fork", "undo", "redo", "prune", "delete"])
      expect(offers(`session ${name}`), name).toBe(false)
    for (const command of ["stats", "permission list", "permission revoke", "permission test"])
      expect(offers(command), command).toBe(false)
    for (const command of ["auth logout", "mcp add", "trust", "serve"])
      expect(offers(command), command).toBe(false)
  })

  test("lists commands of docs/command-line.md, and flags of this page or a page that it links", () => {
    const docs = resolve(import.meta.dirname, "../../docs")
    const page = readFileSync(join(docs, "command-line.md"), "utf8")
    const rows = page.split("\n").filter((line) => line.startsWith("| `tackle"))
    const undocumented = [...helps].flatMap(([command, help]) => {
      const name = ["tackle", command].join(" ").trim()
      const row = rows.find((line) => new RegExp(`^\\| \`${name}(?:\`| [<[])`).test(line))
      if (!row) return listed(help, "Commands").length === 0 ? [name] : []
      const linked = [...row.matchAll(/\]\(([\w-]+\.md)/g)].map(([, file = ""]) => file)
      const texts = [page, ...linked.map((file) => readFileSync(join(docs, file), "utf8"))]
      const isMissing = (flag: string) => !texts.some((text) => new RegExp(`\`${flag}(?![a-z-])`).test(text))
      return listed(help, "Options")
        .filter(isMissing)
        .map((flag) => `${name} ${flag}`)
    })
    expect(undocumented).toEqual([])
  })
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

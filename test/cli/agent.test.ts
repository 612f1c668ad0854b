import { existsSync, readFileSync, symlinkSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { createMachine } from "./run-tackle.ts"
import { hasTmux, openTerminal } from "./terminal.ts"

test("lists every agent with its source and shows the settings that apply", async () => {
  const machine = await createMachine({
    files: {
      ".tackle/agent/keeper.md":
        "---\ndescription: Keeps\nmodel: test/m\ntools:\n  bash: false\npermission:\n  edit: allow\n---\nYou keep.\n",
      ".tackle/agent/ghost.md": "---\nhidden: true\n---\n",
      "tackle.json": '{"agent": {"build": {"steps": 7}}}',
    },
  })
  const list = await machine.run(["agent", "list", "--trust"])
  expect(list.stdout).toMatch(/^keeper +all, \.tackle\/agent\/keeper\.md +Keeps$/m)
  expect(list.stdout).toMatch(/^build +primary, built in, changed by tackle\.json +/m)
  expect(list.stdout).toMatch(/^explore +subagent, built in +/m)
  const columns = list.stdout.trimEnd().split("\n")
  expect(new Set(columns.map((line) => line.search(/(primary|subagent|all),/))).size, list.stdout).toBe(1)
  expect(list.stdout).not.toContain("ghost")
  expect((await machine.run(["agent", "list", "--trust", "--all"])).stdout).toContain("ghost")

  const shown = await machine.run(["agent", "show", "keeper", "--trust", "--format", "json"])
  const file = machine.project.path(".tackle/agent/keeper.md")
  expect(JSON.parse(shown.stdout)).toEqual({
    name: "keeper",
    builtin: false,
    source: { file, line: 2 },
    description: "Keeps",
    mode: "all",
    model: "test/m",
    steps: 100,
    hidden: false,
    tools: { bash: false },
    permission: [],
    projectPermission: [{ permission: "edit", pattern: "*", action: "allow", source: { file, line: 7 } }],
    environmentPermission: [],
    prompt: "You keep.",
  })
  const text = await machine.run(["agent", "show", "keeper", "--trust"])
  for (const part of ["tools       not bash", "cannot override a deny", "You keep."])
    expect(text.stdout).toContain(part)
  expect((await machine.run(["agent", "show", "explore"])).stdout).toMatch(
    /^tools {7}all that the rules allow$/m,
  )
  expect(await machine.run(["agent", "show", "keper"])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('agent "keper" does not exist'),
  })
})

test("creates a trusted file and never overwrites one", async () => {
  const machine = await createMachine({ git: true })
  const create = (...args: string[]) => machine.run(["agent", "create", ...args])
  const flags = [
    "--description",
    "Reads: all of it",
    "--tools",
    "read, grep",
    "--steps",
    "9",
    "--mode",
    "subagent",
  ]
  const made = await machine.run(["agent", "create", "team/reader", ...flags, "--prompt", "-"], {
    stdin: "You read.\n--- \nReally.\n",
  })
  expect(made).toMatchObject({
    code: 0,
    stdout: "Wrote .tackle/agent/team/reader.md.\n",
  })
  const shown = await machine.run(["agent", "show", "team/reader", "--format", "json"])
  expect(JSON.parse(shown.stdout)).toMatchObject({
    description: "Reads: all of it",
    mode: "subagent",
    steps: 9,
    tools: { "*": false, read: true, grep: true },
    prompt: "You read.\n--- \nReally.",
  })

  const before = readFileSync(machine.project.path(".tackle/agent/team/reader.md"), "utf8")
  for (const trust of [[], ["--trust"]])
    expect(await create("team/reader", "--description", "Other", ...trust)).toMatchObject({ code: 2 })
  expect(readFileSync(machine.project.path(".tackle/agent/team/reader.md"), "utf8")).toBe(before)
})

test("reports what is missing or wrong in agent create, and writes nothing", async () => {
  const machine = await createMachine({ git: true })
  const told = async (...args: string[]) => {
    const { code, stderr } = await machine.run(["agent", "create", ...args])
    expect(code).toBe(2)
    return stderr
  }
  expect(await told()).toContain(
    "Pass the agent's name, because Tackle cannot ask for it without a terminal.",
  )
  expect(await told("a")).toContain(
    "Pass --description, because Tackle cannot ask for it without a terminal.",
  )
  expect(await told("../a", "--description", "x")).toContain("Invalid agent name")
  expect(await told("a/../../b", "--description", "x")).toContain("Invalid agent name")
  expect(await told("build", "--description", "x")).toContain("built in")
  expect(await told("a", "--description", "x", "--model", "sonnet")).toContain("expected provider/model")
  expect(await told("a", "--description", "x", "--temperature", "9")).toContain("temperature")
  expect(await told("a", "--description", "x", "--tools", "read, gerp")).toContain(
    'Unknown tool "gerp" in --tools. Did you mean grep?',
  )
  expect(await told("a", "--description", "x", "--tools", "NotebookEdit")).toMatch(
    /Available tools: read, glob, /,
  )
  expect(existsSync(machine.project.path(".tackle"))).toBe(false)

  symlinkSync(machine.home, machine.project.path(".tackle"))
  expect(await told("a", "--description", "x")).toContain("resolves to a path outside this project")
  expect(existsSync(join(machine.home, "agent"))).toBe(false)
})

test("creates an agent with tools from files, from servers and by pattern", async () => {
  const machine = await createMachine({
    files: { ".tackle/tool/greet.js": "export default {}" },
    config: { mcp: { tickets: { type: "local", command: ["./none"] } } },
    git: true,
  })
  const tools = "write,greet,tickets_open,web*,todoread"
  const made = await machine.run(["agent", "create", "a", "--description", "x", "--tools", tools])
  expect(made.code).toBe(0)
  expect(await machine.project.read(".tackle/agent/a.md")).toContain("tickets_open: true")
})

test("creates an agent of the user with --user, which is available immediately", async () => {
  const machine = await createMachine({})
  const made = await machine.run([
    ...["agent", "create", "mine", "--user", "--description", "Mine", "--format", "json"],
  ])
  const file = join(machine.home, "config/tackle/agent/mine.md")
  expect(JSON.parse(made.stdout)).toEqual({ name: "mine", file, scope: "user" })
  expect((await machine.run(["agent", "list"])).stdout).toMatch(/^mine +all, .*mine\.md +Mine$/m)
})

test.skipIf(!hasTmux)("asks for missing values at a terminal", async () => {
  const machine = await createMachine({ git: true })
  const terminal = await openTerminal(machine)
  await terminal.tackle("agent", "create")
  await terminal.sees("Name of the agent")
  await terminal.press("asker", "Enter")
  await terminal.sees("What is the agent's purpose?")
  await terminal.press("Asks", "Enter")
  await terminal.sees("System prompt")
  await terminal.press("You ask.", "Enter")
  await terminal.sees("[exit 0]")
  expect(readFileSync(machine.project.path(".tackle/agent/asker.md"), "utf8")).toBe(
    "---\ndescription: Asks\n---\n\nYou ask.\n",
  )
})

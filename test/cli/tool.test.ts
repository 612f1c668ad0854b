import { execFile } from "node:child_process"
import { existsSync } from "node:fs"
import { promisify } from "node:util"
import { expect, onTestFinished, test } from "vitest"
import { createLanguageService } from "../../src/lsp/service.ts"
import { realServers } from "../lsp/servers.ts"
import { createMachine, runDoctor } from "./run-tackle.ts"
import { hasTmux, openTerminal } from "./terminal.ts"

test("lists the offered tools, with --all every tool with the reason, and prints the schema for models", async () => {
  const machine = await createMachine({
    config: { tools: { todoread: false }, permission: { glob: "deny" } },
  })
  const [offered, all, json, schema, unknown] = await Promise.all([
    machine.run(["tool", "list"]),
    machine.run(["tool", "list", "--all"]),
    machine.run(["tool", "list", "--all", "--format", "json"]),
    machine.run(["tool", "schema", "read"]),
    machine.run(["tool", "schema", "reed"]),
  ])
  expect(offered.stdout).toMatch(/^read +Reads a file.*\.$/m)
  expect(offered.stdout).not.toMatch(/^glob|^invalid|^todoread/m)
  expect(all.stdout).toMatch(/^glob +unavailable: .*\n/m)
  expect(all.stdout).toMatch(/^invalid +unavailable: /m)

  const { tools } = JSON.parse(json.stdout)
  for (const tool of tools) {
    expect(tool).toMatchObject({
      id: expect.any(String),
      description: expect.any(String),
      parameters: { type: "object" },
      source: "builtin",
      offered: expect.any(Boolean),
    })
    expect(tool.offered === (tool.reason === undefined), tool.id).toBe(true)
  }
  const read = tools.find(({ id }: { id: string }) => id === "read")
  expect(JSON.parse(schema.stdout)).toEqual({
    name: "read",
    description: read.description,
    parameters: read.parameters,
  })
  expect(unknown).toMatchObject({
    code: 2,
    stdout: "",
    stderr: expect.stringMatching(/tool "reed" does not exist.*read/),
  })
})

test("exits from tool call with 0 completed, 1 error, 2 invalid, 3 refused", async () => {
  const machine = await createMachine({ files: { "a.txt": "seven\n", ".env": "KEY=1\n" } })
  const call = (tool: string, input: unknown, ...flags: string[]) =>
    machine.run(["tool", "call", tool, typeof input === "string" ? input : JSON.stringify(input), ...flags])
  const bash = { command: "touch made", description: "Make it" }
  const [read, missing, invalid, malformed, unknown, refused, told, denied, auto, secret] = await Promise.all(
    [
      call("read", { filePath: "a.txt" }, "--format", "json"),
      call("read", { filePath: "b.txt" }, "--format", "json"),
      call("read", {}, "--format", "json"),
      call("read", "{filePath"),
      call("raed", {}),
      call("bash", bash, "--format", "json"),
      call("bash", bash),
      call("bash", bash, "--auto", "--deny", "bash:touch *"),
      call("bash", { ...bash, command: "touch other" }, "--auto"),
      call("read", { filePath: ".env" }, "--auto"),
    ],
  )
  expect(read.code).toBe(0)
  expect(JSON.parse(read.stdout)).toMatchObject({
    tool: "read",
    status: "completed",
    input: { filePath: "a.txt" },
    output: expect.stringContaining("1→seven"),
    title: "a.txt",
    time: { start: expect.any(Number), end: expect.any(Number) },
  })
  expect(missing.code).toBe(1)
  expect(JSON.parse(missing.stdout)).toMatchObject({
    status: "error",
    error: expect.stringContaining("b.txt"),
  })
  expect(invalid.code).toBe(2)
  expect(JSON.parse(invalid.stdout)).toMatchObject({
    status: "error",
    error: expect.stringMatching(
      /^The read tool was called with invalid arguments: filePath: .*\nPlease rewrite/,
    ),
  })
  expect(malformed).toMatchObject({
    code: 2,
    stdout: "",
    stderr: expect.stringMatching(/^tackle: .*not valid JSON/),
  })
  expect(unknown).toMatchObject({
    code: 2,
    stdout: "",
    stderr: expect.stringContaining('tool "raed" does not exist. Did you mean read'),
  })
  expect(refused.code).toBe(3)
  expect(JSON.parse(refused.stdout)).toMatchObject({ status: "error", metadata: { kind: "refused" } })
  expect(told).toMatchObject({
    code: 3,
    stderr: expect.stringContaining("--allow 'bash:touch made' --allow 'edit:made'\n"),
  })
  expect(denied).toMatchObject({ code: 3, stdout: "", stderr: expect.stringContaining("denied by a rule") })
  expect(auto.code).toBe(0)
  expect(secret.code).toBe(3)
})

test("writes and edits without a session, because the user knows the state of the file", async () => {
  const machine = await createMachine({ files: { "a.txt": "seven\n" } })
  const edit = { filePath: "a.txt", oldString: "seven", newString: "eight" }
  const run = await machine.run(["tool", "call", "edit", JSON.stringify(edit), "--allow", "edit:a.txt"])
  expect(run.code).toBe(0)
  expect(await machine.project.read("a.txt")).toBe("eight\n")
})

test("reports a script without execute permission with the command that sets it, and not a data file", async () => {
  const machine = await createMachine({
    files: {
      ".tackle/tool/it's": "#!/bin/sh\necho\n",
      ".tackle/tool/data.json": "{}",
      ".tackle/tool/.hidden": "#!/bin/sh\n",
    },
  })
  const file = machine.project.path(".tackle/tool/it's")
  const told = `${file}: the script is not executable, so it is not offered as a tool. To fix this: chmod +x '${file.replace("'", "'\\''")}'`
  const list = await machine.run(["tool", "list", "--trust"])
  expect(list).toMatchObject({ code: 0, stderr: `tackle: ${told}\n` })
  const doctor = await runDoctor(machine, "--format", "json")
  expect(doctor.stdout).toContain("chmod +x")
})

test.skipIf(!hasTmux)(
  "makes control characters of an output visible at a terminal (needs tmux)",
  async () => {
    const machine = await createMachine({
      files: { "notes.txt": "a\u001b[2Jb\u001b]0;title\u0007c\u009b1md\n" },
    })
    const terminal = await openTerminal(machine)
    await terminal.tackle("tool", "call", "read", '{"filePath":"notes.txt"}')
    expect(await terminal.sees("[exit 0]")).toContain("a<U+001B>[2Jb<U+001B>]0;title<U+0007>c<U+009B>1md")
    const { stdout } = await machine.run(["tool", "call", "read", '{"filePath":"notes.txt"}'])
    expect(stdout).toContain("a\u001b[2Jb")
  },
)

test("creates a tool that can be called, and tests and types that hold without an installation", {
  timeout: 120_000,
}, async () => {
  const machine = await createMachine({
    git: true,
    files: {
      ".tackle/tool/plain.ts": `import { tool } from "@opencode-ai/plugin/tool"
        export default tool({
          description: "Plain.",
          args: { n: tool.schema.number() },
          async execute({ n }, ctx) { const text: string = n; return text + ctx.directory },
        })`,
    },
  })
  const created = await machine.run(["tool", "new", "shout"])
  expect(created).toMatchObject({ code: 0, stdout: expect.stringContaining("Wrote .tackle/tool/shout.ts") })
  const called = await machine.run(["tool", "call", "shout", '{"text":"hello"}', "--allow", "shout"])
  expect(called).toMatchObject({ code: 0, stdout: "HELLO\n" })

  const directory = machine.project.directory
  const run = (...args: string[]) => promisify(execFile)(process.execPath, args, { cwd: directory })
  const { stdout, stderr } = await run("--test", ".tackle/test/shout.test.ts")
  expect(stdout).toContain("pass 2")
  expect(stderr).toBe("")

  const { PATH = "" } = process.env
  const service = createLanguageService({
    config: realServers.typescript,
    worktree: directory,
    trusted: false,
    environment: { PATH, HOME: machine.home },
    limits: { diagnoseMs: 60_000 },
  })
  onTestFinished(() => service.close())
  const errors = async (name: string) => {
    const found = await service.diagnose(machine.project.path(".tackle", name), new AbortController().signal)
    return found?.filter(({ severity }) => severity === 1).map(({ message }) => String(message))
  }
  expect(await errors("tool/shout.ts")).toEqual([])
  expect(await errors("test/shout.test.ts")).toEqual([])
  expect(await errors("tool/plain.ts")).toEqual(["Type 'number' is not assignable to type 'string'."])
  const source = await machine.project.read(".tackle/tool/shout.ts")
  await machine.project.write(".tackle/tool/shout.ts", source.replace("text.length", "text.size"))
  expect(await errors("tool/shout.ts")).toEqual([expect.stringMatching(/^Property 'size' does not exist/)])
})

test("keeps what is in the config directory, and rejects names that are used", async () => {
  const machine = await createMachine({
    files: {
      ".opencode/tool/old.js": "module.exports = 1",
      ".opencode/tsconfig.json": "{}",
      ".opencode/node_modules/zod/package.json": "{}",
      ".tackle/tool/taken.py": "",
    },
  })
  expect(await machine.run(["tool", "types"])).toMatchObject({
    code: 0,
    stdout: expect.stringContaining(".opencode"),
  })
  expect(await machine.project.read(".opencode/tsconfig.json")).toBe("{}")
  expect(await machine.project.read(".opencode/node_modules/zod/package.json")).toBe("{}")
  expect(existsSync(machine.project.path(".opencode/package.json"))).toBe(false)
  expect(existsSync(machine.project.path(".opencode/node_modules/tackle/package.json"))).toBe(true)

  expect((await machine.run(["tool", "new", "first"])).code).toBe(0)
  for (const name of ["first", "old", "read", "todowrite", "invalid", "doom_loop", "a b", "../x", ""])
    expect(await machine.run(["tool", "new", name]), name).toMatchObject({ code: 2, stdout: "" })
})

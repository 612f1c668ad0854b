import { spawnSync } from "node:child_process"
import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import { expect, onTestFinished, test } from "vitest"
import { createTackle } from "../../src/engine/create-tackle.ts"
import type { TackleOptions } from "../../src/engine/options.ts"
import { collectTrustItems } from "../../src/permission/trust.ts"
import { findToolFiles } from "../../src/registry/files.ts"
import type { ToolFile } from "../../src/registry/load-tool-file.ts"
import { createMemoryStore } from "../../src/store/memory.ts"
import { realPath } from "../../src/util/paths.ts"
import { temporaryDirectory } from "./make-program.ts"

const example = resolve(import.meta.dirname, "../../examples/any-language")

const hasPython = spawnSync("python3", ["-c", "import sys; sys.exit(sys.version_info < (3, 9))"]).status === 0
const hasPydantic =
  spawnSync("python3", ["-c", "import pydantic; pydantic.BaseModel.model_validate"]).status === 0
const withPython = hasPython ? test : test.skip
/** A skipped test has the reason in its name. */
const python = (name: string) => (hasPython ? name : `${name} (skipped: no python3 of 3.9 or later here)`)

test("runs the shell example", async () => {
  const tackle = await openProject(copyExample())
  const { state } = await tackle.callTool({ tool: "disk_free", input: "{}" })
  expect(state).toMatchObject({ status: "completed", output: expect.stringMatching(/^\d+ KB are free\.$/) })
})

withPython(python("the Python example asks, reports and answers"), async () => {
  const tackle = await openProject(copyExample())
  expect(tackle.problems()).toEqual([])
  const input = JSON.stringify({ file_path: "notes.txt", longest: 1 })
  const { state } = await tackle.callTool({ tool: "word_count", input })
  expect(state).toMatchObject({
    status: "completed",
    output: "9 words\nbrown",
    title: "notes.txt",
    metadata: { words: 9 },
  })
})

withPython(python("what a tool asks for is judged as any request is"), async () => {
  const tackle = await openProject(copyExample(), { permission: { "*": "allow", read: "deny" } })
  const input = JSON.stringify({ file_path: "notes.txt" })
  const { state } = await tackle.callTool({ tool: "word_count", input })
  expect(state).toMatchObject({ status: "error", error: expect.stringContaining("denied by a rule") })
})

withPython(python("arguments are checked by the manifest's schema, which models are sent"), async () => {
  const tackle = await openProject(copyExample())
  const { state } = await tackle.callTool({ tool: "word_count", input: '{"longest":"two","x":1}' })
  const error = state.status === "error" ? state.error : ""
  expect(error).toContain("file_path: expected string, got nothing")
  expect(error).toContain('longest: expected number, got "two"')
  expect(error).toContain('unknown key "x"')
  const listed = (await tackle.tools()).find(({ id }) => id === "word_count")
  expect(listed?.parameters).toEqual({
    type: "object",
    properties: { file_path: { type: "string" }, longest: { type: "integer", default: 0 } },
    required: ["file_path"],
    additionalProperties: false,
  })
})

withPython(
  python("plain type hints of the function are its parameters, and print does no harm"),
  async () => {
    const project = temporaryDirectory()
    writeTool(project, "greet.py", [
      "from typing import List, Literal, Optional",
      "from tackle_tool import define_tool, main",
      '@define_tool("greet", "Says hello.")',
      'def greet(names: List[str], tone: Literal["warm", "cold"] = "warm", note: Optional[str] = None):',
      '    print("stray")',
      '    return f"{tone}: {names} {note}"',
      "main(greet)",
    ])
    const tackle = await openProject(project)
    const { state } = await tackle.callTool({ tool: "greet", input: '{"names":["Ada"]}' })
    expect(state).toMatchObject({ output: "warm: ['Ada'] None", metadata: { stderr: "stray" } })
  },
)

withPython(python("an abort cancels the function, which may clean up"), async () => {
  const project = temporaryDirectory()
  writeTool(project, "wait.py", [
    "import asyncio, pathlib",
    "from tackle_tool import define_tool, main",
    '@define_tool("wait", "Waits.")',
    "async def wait(ctx):",
    "    try:",
    '        pathlib.Path("started").touch()',
    "        await asyncio.sleep(1000)",
    "    finally:",
    '        pathlib.Path("cleaned").write_text(str(ctx.abort.is_set()))',
    "main(wait)",
  ])
  const tackle = await openProject(project)
  const stop = new AbortController()
  const call = tackle.callTool({ tool: "wait", input: "{}", signal: stop.signal })
  while (!existsSync(join(project, "started"))) await delay(5)
  stop.abort()
  expect((await call).state.status).toBe("error")
  expect(readFileSync(join(project, "cleaned"), "utf8")).toBe("True")
})

const withPydantic = hasPydantic ? test : test.skip
withPydantic(
  hasPydantic ? "Pydantic models are parameters" : "Pydantic (skipped: not installed)",
  async () => {
    const project = temporaryDirectory()
    writeTool(project, "add.py", [
      "from pydantic import BaseModel, Field",
      "from tackle_tool import ToolResult, define_tool, main",
      "class Params(BaseModel):",
      '    a: int = Field(ge=0, description="the first")',
      "    b: int | None = None",
      '@define_tool(tool_id="add", description="Adds.", parameters=Params)',
      "async def add(args: Params, ctx) -> ToolResult:",
      '    return ToolResult("sum", str(args.a + (args.b or 0)))',
      "main(add)",
    ])
    const tackle = await openProject(project)
    expect(await tackle.callTool({ tool: "add", input: '{"a":2,"b":3}' })).toMatchObject({
      state: { output: "5" },
    })
    const { state } = await tackle.callTool({ tool: "add", input: '{"a":-1}' })
    expect(state).toMatchObject({ status: "error", error: expect.stringContaining("a: ") })
  },
)

test("runs a trusted program from a private copy, and rejects changed files", async () => {
  const project = temporaryDirectory()
  writeTool(
    project,
    "where.sh",
    [
      '[ "$1" = --describe ] && echo \'{"name":"where","description":"d","parameters":{"type":"object"}}\' && exit',
      "read -r call",
      `id=$(printf '%s' "$call" | sed 's/^{"type":"call","id":"\\([A-Za-z0-9_]*\\)".*/\\1/')`,
      `printf '{"type":"result","id":"%s","output":"%s"}\\n' "$id" "$0"`,
    ],
    "#!/bin/sh",
  )
  const file = join(project, ".tackle/tool/where.sh")
  const toolFiles = trusted(project)
  const tackle = await openProject(project, { toolFiles })
  const call = () => tackle.callTool({ tool: "where", input: "{}" })
  const copies = realPath(join(project, ".data/external-tool"))
  expect(await call()).toMatchObject({ state: { output: expect.stringContaining(copies) } })

  // The copy has the trusted content: changes of the original have no effect, and it cannot be written to.
  writeFileSync(file, "#!/bin/sh\necho other\n")
  expect(await call()).toMatchObject({ state: { output: expect.stringContaining(copies) } })
  const [copy = ""] = readdirSync(copies)
  writeFileSync(join(copies, copy, "planted"), "x")
  expect(await call()).toMatchObject({
    state: { status: "error", error: expect.stringContaining("has changed since it was trusted") },
  })
  writeFileSync(file, "#!/bin/sh\necho another\n")
  expect(await call()).toMatchObject({ state: { status: "error" } })
  expect(tackle.problems()).toEqual([
    { file, message: expect.stringContaining("has changed since it was trusted") },
  ])
  const again = await openProject(project, { toolFiles, dataDirectory: join(project, ".fresh") })
  expect(again.problems()).toEqual([
    { file, message: expect.stringContaining("has changed since it was trusted") },
  ])
})

test("rejects a relative interpreter path", async () => {
  const project = temporaryDirectory()
  writeTool(project, "probe", ["touch ran"], "#!./interpreter")
  const tackle = await openProject(project, { toolFiles: trusted(project) })
  expect(tackle.problems()).toEqual([
    {
      file: join(project, ".tackle/tool/probe"),
      message: expect.stringContaining('interpreter path "./interpreter"'),
    },
  ])
})

test("reports an invalid, slow or misnamed manifest without affecting other files", async () => {
  const project = temporaryDirectory()
  writeTool(project, "a_text", ["echo hello"], "#!/bin/sh")
  writeTool(
    project,
    "b_name",
    [`echo '{"name":"x","description":"d","parameters":{"type":"object"}}'`],
    "#!/bin/sh",
  )
  writeTool(project, "c_fails", ["printf 'Traceback:\\n  x\\nOSError: broken\\n' >&2; exit 4"], "#!/bin/sh")
  writeTool(project, "d_long", ["yes"], "#!/bin/sh")
  writeTool(
    project,
    "e_schema",
    [`echo '{"name":"e_schema","description":"d","parameters":{"type":"object","not":{"type":"null"}}}'`],
    "#!/bin/sh",
  )
  const tackle = await openProject(project)
  expect(tackle.problems().map(({ message }) => message)).toEqual([
    expect.stringContaining("did not print a JSON object"),
    expect.stringContaining('printed the name "x"'),
    "--describe ended with exit code 4: OSError: broken.",
    expect.stringContaining("printed more than 262144 bytes"),
    expect.stringContaining("unsupported schema: not is not supported"),
  ])
  expect((await tackle.tools()).length).toBeGreaterThan(5)
})

test("ignores files that are not executable", () => {
  const project = temporaryDirectory()
  writeTool(project, "probe", [], "#!/bin/sh")
  chmodSync(join(project, ".tackle/tool/probe"), 0o644)
  expect(findToolFiles([join(project, ".tackle")])).toEqual([])
})

function copyExample(): string {
  const project = temporaryDirectory()
  cpSync(example, project, { recursive: true })
  return project
}

function writeTool(project: string, name: string, lines: string[], first = "#!/usr/bin/env python3"): void {
  const folder = join(project, ".tackle/tool")
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, name), `${[first, ...lines].join("\n")}\n`)
  chmodSync(join(folder, name), 0o755)
}

/** Returns the current tools of a project with the hashes that `tackle trust` stores. */
function trusted(project: string): ToolFile[] {
  const items = collectTrustItems(project, { config: [], toolFolders: [join(project, ".tackle/tool")] })
  const pinned = new Map(items.flatMap(({ contents }) => [...contents]))
  return items.map(({ file }) => ({ path: file, pinned }))
}

async function openProject(directory: string, options: Partial<TackleOptions> = {}) {
  const tackle = await createTackle({
    directory,
    dataDirectory: join(directory, ".data"),
    store: createMemoryStore(),
    toolFiles: findToolFiles([join(directory, ".tackle")]),
    permission: { "*": "allow" },
    ...options,
  })
  onTestFinished(() => tackle.close())
  return tackle
}

import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest"
import { createTackle } from "../../src/engine/create-tackle.ts"
import type { TackleOptions } from "../../src/engine/options.ts"
import type { Tackle } from "../../src/engine/tackle.ts"
import type { PermissionRequest } from "../../src/schema/permission.ts"
import { createMemoryStore } from "../../src/store/memory.ts"
import { type TemporaryProject, temporaryProject } from "../../src/testing/project.ts"
import { markedEnvironment } from "../lsp/processes.ts"
import { realServers, scriptedServer } from "../lsp/servers.ts"
import { isComplete } from "../runs.ts"

/** Real servers take seconds to start, longer under load. */
const patience = { timeout: 120_000 }

interface Opened {
  tackle: Tackle
  project: TemporaryProject
  running(): number[]
}

/** Closed after each test. */
const open: Opened[] = []

afterEach(async () => {
  for (const opened of open.splice(0)) await close(opened)
})

async function close({ tackle, project, running }: Opened): Promise<void> {
  await tackle.close()
  expect(running()).toEqual([])
  await project.remove()
}

async function setup(files: Record<string, string>, options: Partial<TackleOptions>) {
  const project = await temporaryProject(files)
  const { environment, running } = markedEnvironment()
  const tackle = await createTackle({
    directory: project.directory,
    worktree: project.directory,
    dataDirectory: project.path(".data"),
    store: createMemoryStore(),
    environment,
    experimental: { lsp_tool: true },
    ...options,
  })
  const asked: PermissionRequest[] = []
  tackle.on("permission.asked", async (request) => {
    asked.push(request)
    await request.reply("once")
  })
  const call = async (tool: string, input: object) => {
    const { state } = await tackle.callTool({ tool, input: JSON.stringify(input) })
    return state.status === "completed" ? state.output : `error: ${state.error}`
  }
  const ask = (operation: string, filePath: string, line?: number, character?: number) =>
    call("lsp", { operation, filePath, line, character })
  const opened = { tackle, project, running, asked, call, ask }
  open.push(opened)
  return opened
}

const shapes = `export interface Shape {
  area(): number
}
export class Square implements Shape {
  side = 2
  area(): number {
    return square(this.side)
  }
}
export function square(n: number): number {
  return n * n
}
`
const main = `import { Square, square } from "./shapes"
export function total(): number {
  return square(3) + new Square().area()
}
`
const typescript = {
  "tsconfig.json": '{"compilerOptions":{"strict":true}}',
  "shapes.ts": shapes,
  "main.ts": main,
}
const python = {
  "shapes.py": "def square(n: int) -> int:\n    return n * n\n",
  "main.py": "from shapes import square\n\n\ndef total() -> int:\n    return square(3)\n",
}

/** Outside CI, one server, because each needs seconds to start. `lsp/service.test.ts` starts all of them. */
const [mainServers, editServers] = isComplete
  ? ([
      ["typescript", "native"],
      ["native", "python"],
    ] as const)
  : ([["native"], ["native"]] as const)

describe.each(mainServers)("operations with the server %s", patience, (name) => {
  let shared: Awaited<ReturnType<typeof setup>>

  // A server takes seconds to start, so the tests share one.
  beforeAll(async () => {
    shared = await setup(typescript, { lsp: realServers[name] })
    open.splice(open.indexOf(shared), 1)
  })
  afterAll(() => close(shared))

  test("find definitions, references and types", async () => {
    const { ask } = shared
    expect(await ask("goToDefinition", "main.ts", 3, 10)).toBe(
      "shapes.ts:10:17 export function square(n: number): number {",
    )
    expect((await ask("findReferences", "shapes.ts", 10, 17)).split("\n")).toEqual([
      'main.ts:1:18 import { Square, square } from "./shapes"',
      "main.ts:3:10 return square(3) + new Square().area()",
      "shapes.ts:7:12 return square(this.side)",
      "shapes.ts:10:17 export function square(n: number): number {",
    ])
    expect(await ask("goToImplementation", "shapes.ts", 2, 3)).toBe("shapes.ts:6:3 area(): number {")
    expect(await ask("hover", "main.ts", 3, 10)).toContain("square(n: number): number")
    expect(await ask("goToDefinition", "shapes.ts", 3, 1)).toBe(
      "No definition found. Check that line 3, character 1 is on a name.",
    )
  })

  test("find callers and callees", async () => {
    const { ask } = shared
    expect(await ask("prepareCallHierarchy", "main.ts", 3, 10)).toBe("shapes.ts:10:17 function square")
    expect((await ask("incomingCalls", "shapes.ts", 10, 17)).split("\n")).toEqual([
      "main.ts:3:10 in function total",
      "shapes.ts:7:12 in method area",
    ])
    expect((await ask("outgoingCalls", "main.ts", 2, 17)).split("\n").toSorted()).toEqual([
      "shapes.ts:10:17 function square",
      "shapes.ts:4:14 class Square",
      "shapes.ts:6:3 method area",
    ])
  })

  test("list symbols and diagnostics", async () => {
    const { ask, call, project } = shared
    await project.write("main.ts", main)
    expect((await ask("documentSymbol", "shapes.ts")).split("\n")).toEqual([
      "shapes.ts:1:18 interface Shape",
      "  shapes.ts:2:3 method area",
      "shapes.ts:4:14 class Square",
      "  shapes.ts:5:3 property side",
      "  shapes.ts:6:3 method area",
      "shapes.ts:10:17 function square",
    ])
    expect(await call("lsp", { operation: "workspaceSymbol", filePath: "main.ts", query: "Square" })).toMatch(
      /^shapes\.ts:4:\d+ class Square/m,
    )
    expect(await ask("diagnostics", "main.ts")).toBe("No errors or warnings.")
    await project.write("main.ts", main.replace("square(3)", "square('3')"))
    expect(await ask("diagnostics", "main.ts")).toMatch(/^main\.ts:3:17 error 2345: Argument of type/)
  })
})

test("operations work for another language", patience, async () => {
  const { ask } = await setup(python, { lsp: realServers.python })
  expect(await ask("goToDefinition", "main.py", 5, 12)).toBe("shapes.py:1:5 def square(n: int) -> int:")
  expect(await ask("incomingCalls", "shapes.py", 1, 5)).toBe("main.py:5:12 in function total")
  expect(await ask("hover", "main.py", 5, 12)).toContain("def square(n: int) -> int")
  expect(await ask("goToImplementation", "main.py", 5, 12)).toMatch(/^error: .*does not support/)
})

describe("after an edit", patience, () => {
  test.each(editServers)("errors are reported if the server runs: %s", async (name) => {
    const [files, file, broken, right] =
      name === "python"
        ? ([python, "main.py", "square('3')", "square(3)"] as const)
        : ([typescript, "main.ts", "square('3')", "square(3)"] as const)
    const { ask, call, running } = await setup(files, { lsp: realServers[name], permission: "allow" })
    await call("read", { filePath: file })
    const edit = (oldString: string, newString: string) =>
      call("edit", { filePath: file, oldString, newString })

    const silent = await edit(right, broken)
    expect(silent).not.toContain("language server")
    expect(running()).toEqual([])
    await edit(broken, right)

    expect(await ask("diagnostics", file)).toBe("No errors or warnings.")
    expect(await edit(right, broken)).toMatch(
      /\n\nThe language server now reports:\nmain\.\w+:\d+:\d+ error [^\n]+$/,
    )
    expect(await edit(broken, right)).not.toContain("language server")
  })

  test.each([
    ["tsserver", "it was asked for"],
    ["no-tsserver", "it was published"],
  ])(
    "a server that can forward requests to TypeScript is asked, and a missing answer does not count as a clean file: %s",
    async (manner, message) => {
      const { ask } = await setup(
        { "größe 1.txt": "old\n" },
        { lsp: scriptedServer(manner), permission: "allow" },
      )
      expect(await ask("diagnostics", "größe 1.txt")).toBe(`größe 1.txt:1:1 error: ${message}`)
    },
  )

  test("write and apply_patch report errors of every changed file", async () => {
    const { ask, call } = await setup(typescript, { lsp: realServers.native, permission: "allow" })
    await ask("diagnostics", "main.ts")
    expect(await call("write", { filePath: "new.ts", content: "export const one: string = 1\n" })).toMatch(
      /^Created new\.ts .*\n\nThe language server now reports:\nnew\.ts:1:14 error 2322: Type 'number'/,
    )
    await call("read", { filePath: "main.ts" })
    const patchText = [
      "*** Begin Patch",
      "*** Update File: main.ts",
      "@@",
      "-  return square(3) + new Square().area()",
      "+  return square('3') + new Square().area()",
      "*** Update File: new.ts",
      "*** Move to: old.ts",
      "@@",
      "-export const one: string = 1",
      "+export const one: string = 2",
      "*** End Patch",
    ].join("\n")
    const output = await call("apply_patch", { patchText })
    expect(output).toMatch(/reports:\nmain\.ts:3:17 error 2345: .*\nold\.ts:1:14 error 2322: /)
  })

  test("at most twenty errors are reported, and a silent server does not block", async () => {
    const { ask, call } = await setup(typescript, { lsp: realServers.native, permission: "allow" })
    await ask("diagnostics", "main.ts")
    const content = Array.from(
      { length: 25 },
      (_, index) => `export const n${index}: string = ${index}\n`,
    ).join("")
    const output = await call("write", { filePath: "many.ts", content })
    expect(output.match(/error 2322/g)).toHaveLength(20)
    expect(output).toMatch(/\n\(5 more\)$/)

    const quiet = await setup({ "a.txt": "a\n" }, { lsp: scriptedServer("polite"), permission: "allow" })
    expect(await quiet.ask("hover", "a.txt", 1, 1)).toMatch(/^here is/)
    await quiet.call("read", { filePath: "a.txt" })
    expect(await quiet.call("write", { filePath: "a.txt", content: "b\n" })).toBe(
      "Overwrote a.txt (1 line, 2 bytes).",
    )
  })
})

describe("permission", patience, () => {
  test("is requested once to start a server, and not for a running one", async () => {
    const { ask, asked } = await setup(typescript, { lsp: realServers.native })
    await ask("hover", "main.ts", 3, 10)
    expect(asked).toMatchObject([
      { permission: "lsp", patterns: ["start native"], metadata: { operation: "hover" } },
    ])
    expect(asked[0]?.metadata).toMatchObject({
      command: expect.stringMatching(/\/tsc$/),
      reasons: [expect.stringContaining("outside the sandbox")],
    })
    await ask("goToDefinition", "main.ts", 3, 10)
    expect(asked).toHaveLength(1)
  })

  test("refused: starts nothing", async () => {
    const { ask, running } = await setup(typescript, {
      lsp: realServers.native,
      permission: { lsp: { "start *": "deny" } },
    })
    expect(await ask("hover", "main.ts", 3, 10)).toMatch(/^error: /)
    expect(running()).toEqual([])
  })

  test("to read applies to the file and to results in other files", async () => {
    const user = (name: string) => `import { square } from "./shapes"\nexport const ${name} = square(1)\n`
    const { ask } = await setup(
      { ...typescript, "denied.ts": user("denied"), "asked.ts": user("asked") },
      {
        lsp: realServers.native,
        permission: { lsp: "allow", read: { "denied.ts": "deny", "asked.ts": "ask" } },
      },
    )
    expect(await ask("documentSymbol", "denied.ts")).toMatch(/^error: /)
    const output = await ask("findReferences", "shapes.ts", 10, 17)
    expect(output).toContain("main.ts:3:10")
    expect(output).not.toMatch(/denied|asked/)
    expect(output).toMatch(/\n\n\(Omitted 2 results in files/)
  })
})

describe("without a server", () => {
  test("returns the reason", async () => {
    const { ask } = await setup(
      { "a.txt": "", "b.ts": "" },
      { lsp: { typescript: { command: ["no-such-server"] } } },
    )
    expect(await ask("hover", "a.txt", 1, 1)).toMatch(/No language server is configured for .*a\.txt/)
    const off = await setup({ "b.ts": "" }, { lsp: false })
    expect(await off.ask("hover", "b.ts", 1, 1)).toMatch(/No language server is configured/)
    expect(await off.ask("hover", "missing.ts", 1, 1)).toMatch(/missing\.ts/)
  })

  test("requires a position for operations on a name", async () => {
    const { ask } = await setup({ "a.txt": "" }, { lsp: scriptedServer("polite") })
    expect(await ask("hover", "a.txt")).toMatch(/hover requires the line and character/)
  })

  test("without the feature the tool is unavailable, and edits report no errors", async () => {
    const { call, running } = await setup(typescript, {
      lsp: realServers.native,
      permission: "allow",
      experimental: {},
    })
    expect(await call("lsp", { operation: "hover", filePath: "main.ts", line: 1, character: 1 })).toMatch(
      /this tool does not exist/,
    )
    expect(running()).toEqual([])
  })
})

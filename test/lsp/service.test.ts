import { existsSync } from "node:fs"
import { pathToFileURL } from "node:url"
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest"
import type { Location, LocationLink } from "vscode-languageserver-protocol"
import type { LspConfig } from "../../src/lsp/config.ts"
import type { LanguageLimits, LanguageService } from "../../src/lsp/service.ts"
import { createLanguageService } from "../../src/lsp/service.ts"
import { pathOfUri } from "../../src/lsp/uri.ts"
import { type TemporaryProject, temporaryProject } from "../../src/testing/project.ts"
import { markedEnvironment } from "./processes.ts"
import { realServers, scriptedServer } from "./servers.ts"

const signal = new AbortController().signal
const open: { service: LanguageService; project: TemporaryProject; running(): number[] }[] = []

afterEach(async () => {
  for (const each of open.splice(0)) await close(each)
})

async function close({ service, project, running }: (typeof open)[number]): Promise<void> {
  await service.close()
  expect(running()).toEqual([])
  await project.remove()
}

/** The caller closes the service. */
async function start(
  config: LspConfig,
  files: Record<string, string>,
  limits: Partial<LanguageLimits> = {},
  trusted = false,
) {
  const project = await temporaryProject(files)
  const worktree = project.directory
  const { environment, running } = markedEnvironment()
  const service = createLanguageService({ config, worktree, trusted, environment, limits })
  return { service, project, running }
}

/** Starts a service that is closed after the test. */
async function setup(...options: Parameters<typeof start>) {
  const opened = await start(...options)
  open.push(opened)
  return opened
}

const typescript = {
  "tsconfig.json": '{"compilerOptions":{"strict":true}}',
  "a.ts": "export function area(side: number): number {\n  return side * side\n}\n",
  "b.ts": 'import { area } from "./a"\nexport const room: number = area(3)\n',
}
const python = {
  "a.py": "def area(side: int) -> int:\n    return side * side\n",
  "b.py": "from a import area\nroom: int = area(3)\n",
}
const cases = [
  {
    name: "typescript",
    files: typescript,
    a: "a.ts",
    b: "b.ts",
    column: 28,
    right: "number =",
    wrong: "string =",
  },
  {
    name: "native",
    files: typescript,
    a: "a.ts",
    b: "b.ts",
    column: 28,
    right: "number =",
    wrong: "string =",
  },
  { name: "python", files: python, a: "a.py", b: "b.py", column: 12, right: "int =", wrong: "str =" },
] as const

/** Real servers take seconds to start, longer on a busy machine. */
const slow = { timeout: 120_000 }

describe.each(cases)("the real server $name", slow, ({ name, files, a, b, column, right, wrong }) => {
  const text: Record<string, string> = files
  // The tests share a server, in order, because a start takes seconds.
  let shared: Awaited<ReturnType<typeof start>>
  beforeAll(async () => {
    shared = await start(realServers[name], files, { editMs: 20_000 })
  })
  afterAll(() => close(shared))
  const definition = async (service: LanguageService, project: TemporaryProject) => {
    const params = {
      textDocument: { uri: pathToFileURL(project.path(b)).href },
      position: { line: 1, character: column },
    }
    const method = "textDocument/definition"
    const question = { path: project.path(b), method, params, needs: "definitionProvider", signal } as const
    const found = await service.ask<(Location | LocationLink)[] | Location | null>(question)
    return [found ?? []].flat().map((at) => {
      const [uri, range] = "targetUri" in at ? [at.targetUri, at.targetSelectionRange] : [at.uri, at.range]
      return { path: pathOfUri(uri), line: range.start.line }
    })
  }
  const messages = (diagnostics: { severity?: number; message: unknown }[] | undefined) =>
    diagnostics?.filter(({ severity }) => severity === 1).map(({ message }) => String(message))

  test("starts on demand, answers across files, and reports errors of an edit", async () => {
    const { service, project, running } = shared
    const path = project.path(b)
    expect((await service.find(path)).started).toBe(false)
    expect(await service.changed([{ path, kind: "changed" }], signal)).toEqual([])
    expect(running()).toEqual([])

    expect(await definition(service, project)).toEqual([{ path: project.path(a), line: 0 }])
    expect((await service.find(path)).started).toBe(true)
    expect(messages(await service.diagnose(path, signal))).toEqual([])

    await project.write(b, (text[b] ?? "").replace(right, wrong))
    const [broken] = await service.changed([{ path, kind: "changed" }], signal)
    expect(broken?.path).toBe(path)
    expect(messages(broken?.diagnostics)).toEqual([expect.stringContaining("not assignable")])
    await project.write(b, text[b] ?? "")
    const [fixed] = await service.changed([{ path, kind: "changed" }], signal)
    expect(messages(fixed?.diagnostics)).toEqual([])
    // A server that publishes only news is silent here. Without a request, the edit would wait for the full limit.
    await project.write(b, `${text[b]}\n`)
    const [clean] = await service.changed([{ path, kind: "changed" }], signal)
    expect(messages(clean?.diagnostics)).toEqual([])
  })

  test("sees changes by others, also in files that were not requested, and is restarted after it was killed", async () => {
    const { service, project, running } = shared
    await service.diagnose(project.path(a), signal)
    expect(await definition(service, project)).toEqual([{ path: project.path(a), line: 0 }])
    await project.write(a, `\n\n${text[a]}`)
    expect(await definition(service, project)).toEqual([{ path: project.path(a), line: 2 }])

    const before = running()
    expect(before.length).toBeGreaterThan(0)
    for (const pid of before) process.kill(pid, "SIGKILL")
    expect(await definition(service, project)).toEqual([{ path: project.path(a), line: 2 }])
    expect(running()).not.toEqual(before)
  })
})

test.each([
  [
    false,
    /\(programs not found: \.\/missing\)\. Programs in this untrusted project are not run\. Use grep and read\.$/,
  ],
  [true, /\(programs not found: \.\/missing\)\. Use grep and read\.$/],
])("names the missing program of a server (project trusted: %s)", async (trusted, message) => {
  const config = { mine: { command: ["./missing"], extensions: [".mine"] } }
  const { service, project } = await setup(config, {}, {}, trusted)
  await expect(service.find(project.path("a.mine"))).rejects.toThrow(message)
})

describe("a broken server", () => {
  const files = { "a.txt": "text\n" }
  const hover = (service: LanguageService, project: TemporaryProject, stop = signal) => {
    const path = project.path("a.txt")
    const params = { textDocument: { uri: pathToFileURL(path).href }, position: { line: 0, character: 0 } }
    const method = "textDocument/hover"
    return service.ask<{ contents: string }>({ path, method, params, needs: "hoverProvider", signal: stop })
  }

  test("is restarted and asked again if it dies during a request", async () => {
    const { service, project } = await setup({}, files)
    await service.close()
    const again = await setup(scriptedServer("die-once", project.path("died")), files)
    expect((await hover(again.service, again.project)).contents).toMatch(/^here is \d+$/)
  })

  test("is not restarted more than three times, and the error shows its stderr", async () => {
    const { service, project } = await setup(scriptedServer("exit"), files)
    // Each request tries twice.
    await expect(hover(service, project)).rejects.toThrow(/exited with code 3.*licence has run out/s)
    await expect(hover(service, project)).rejects.toMatchObject({ code: "lsp.ended" })
    await expect(hover(service, project)).rejects.toMatchObject({ code: "lsp.unavailable" })
  })

  test("times out, and is replaced after it hangs twice", async () => {
    const { service, project, running } = await setup(scriptedServer("hang"), files, { requestMs: 50 })
    await expect(hover(service, project)).rejects.toMatchObject({ code: "timeout" })
    const [first] = running()
    await expect(hover(service, project)).rejects.toMatchObject({ code: "timeout" })
    expect(running()).not.toContain(first)
    await expect(hover(service, project)).rejects.toMatchObject({ code: "timeout" })
    expect(running()).toHaveLength(1)
  })

  test("continues after a caller aborts", async () => {
    const { service, project, running } = await setup(scriptedServer("hang"), files)
    const stop = new AbortController()
    const question = hover(service, project, stop.signal)
    await expect.poll(() => running()).toHaveLength(1)
    stop.abort()
    await expect(question).rejects.toMatchObject({ code: "aborted" })
    expect(running()).toHaveLength(1)
  })

  test("that does not start in time is ended", async () => {
    const { service, project, running } = await setup(scriptedServer("mute"), files, { startMs: 50 })
    await expect(hover(service, project)).rejects.toMatchObject({ code: "timeout" })
    expect(running()).toEqual([])
  })

  test.each(["garbage", "prose"])("that sends invalid messages is ended: %s", async (manner) => {
    const { service, project, running } = await setup(scriptedServer(manner), files)
    await expect(hover(service, project)).rejects.toMatchObject({ code: "lsp.ended" })
    expect(running()).toEqual([])
  })

  test.each(["mute", "hang", "stubborn"])("is ended with the service: %s", async (manner) => {
    const { service, project, running } = await setup(scriptedServer(manner), files)
    const question = Promise.allSettled([hover(service, project)])
    await expect.poll(() => running()).toHaveLength(1)
    if (manner === "stubborn") await question
    await service.close()
    await question
    expect(running()).toEqual([])
    await expect(hover(service, project)).rejects.toMatchObject({ code: "lsp.unavailable" })
  })

  test("that ends during a wait ends the wait", async () => {
    const { service, project, running } = await setup(scriptedServer("polite"), files, {
      diagnoseMs: 100_000,
    })
    const diagnosis = Promise.allSettled([service.diagnose(project.path("a.txt"), signal)])
    const killed = new Set<number>()
    // It is restarted once.
    for (const _ of ["first", "second"]) {
      const fresh = () => running().filter((pid) => !killed.has(pid))
      await expect.poll(fresh, { timeout: 25_000 }).toHaveLength(1)
      for (const pid of fresh()) {
        killed.add(pid)
        process.kill(pid, "SIGKILL")
      }
    }
    expect(await diagnosis).toMatchObject([{ status: "rejected", reason: { code: "lsp.ended" } }])
  })

  test("rejects a request that it does not support", async () => {
    const { service, project } = await setup(scriptedServer("polite"), files)
    const path = project.path("a.txt")
    const question = {
      path,
      method: "textDocument/definition",
      params: {},
      needs: "definitionProvider",
      signal,
    } as const
    await expect(service.ask(question)).rejects.toMatchObject({ code: "lsp.answer" })
    expect(await service.changed([{ path, kind: "changed" }], AbortSignal.abort())).toEqual([])
  })
})

describe("the TypeScript of a project", slow, () => {
  /** A package that records its run and exits. */
  const files = {
    ...typescript,
    "node_modules/typescript/package.json": '{"name":"typescript","version":"5.9.3"}',
    "node_modules/typescript/lib/tsserver.js": `require("fs").writeFileSync(__dirname + "/ran", "")`,
    "node_modules/typescript/lib/tsserverlibrary.js": "",
    "node_modules/typescript/lib/typescript.js": "",
  }
  const { command, initialization } = realServers.typescript.typescript
  const opened = async (config: LspConfig, trusted: boolean) => {
    const { service, project } = await setup(config, files, { diagnoseMs: 20_000 }, trusted)
    const [result] = await Promise.allSettled([service.diagnose(project.path("b.ts"), signal)])
    return { result, ran: existsSync(project.path("node_modules/typescript/lib/ran")) }
  }

  test("runs if the project is trusted", async () => {
    expect((await opened({ typescript: { command } }, true)).ran).toBe(true)
  })

  test("does not run in an untrusted project: another one is used, or the server does not start", async () => {
    const without = await opened({ typescript: { command } }, false)
    expect(without).toMatchObject({
      result: { status: "rejected", reason: { code: "lsp.unavailable" } },
      ran: false,
    })
    const other = await opened({ typescript: { command, initialization } }, false)
    expect(other).toMatchObject({ result: { status: "fulfilled", value: [] }, ran: false })
  })
})

import { execFileSync, spawnSync } from "node:child_process"
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { resolve } from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import { isDeepStrictEqual } from "node:util"
import { expect, onTestFinished, test } from "vitest"
import { createTackle } from "../../src/engine/create-tackle.ts"
import { defaultDataDirectory } from "../../src/engine/data-directory.ts"
import type { TackleEvent } from "../../src/event/events.ts"
import { EngineClosedError } from "../../src/session/handle.ts"
import { createMemoryStore } from "../../src/store/memory.ts"
import { temporaryProject } from "../../src/testing/project.ts"
import { UsageError } from "../../src/util/errors.ts"
import { startEngine } from "../session/engine.ts"
import { resultsOf, run, tool } from "../session/run.ts"

test("separates two sessions of one engine", async () => {
  const script = (request: { body: { messages: { role: string; content?: unknown }[] } }) => {
    const { messages } = request.body
    const name = /session (\w)/.exec(JSON.stringify(messages))?.[1] ?? "?"
    return messages.at(-1)?.role === "tool"
      ? { text: `I am ${name}.`, pieceSize: 1, pieceDelayMs: 2 }
      : { calls: [{ name: "who", arguments: { name } }], pieceSize: 2, pieceDelayMs: 2 }
  }
  const who = tool("who", async ({ name }, ctx) => {
    await ctx.metadata({ title: `${name}` })
    return { title: "who", output: `${name} in ${ctx.sessionID}` }
  })
  await using engine = await startEngine(script, { tools: [who], permission: { "*": "allow" } })
  const runs = await Promise.all(["A", "B", "C"].map((name) => run(engine, { text: `session ${name}` })))
  for (const [index, { session, events, end }] of runs.entries()) {
    const name = "ABC".charAt(index)
    expect(end.text).toBe(`I am ${name}.`)
    expect(new Set(events.map(({ sessionID }) => sessionID))).toEqual(new Set([session.id]))
    expect(await resultsOf(session)).toEqual([`${name} in ${session.id}`])
  }
})

/** Returns the open handles, timers and listeners of the process. */
function held() {
  const events = [
    "unhandledRejection",
    "uncaughtException",
    "warning",
    "exit",
    "SIGINT",
    "SIGTERM",
    "beforeExit",
  ]
  return {
    resources: process
      .getActiveResourcesInfo()
      .filter((name) => name !== "Immediate")
      .sort(),
    listeners: Object.fromEntries(events.map((event) => [event, process.listenerCount(event)])),
  }
}

test("leaves no handle, timer or listener after twenty prompts and a close", async () => {
  const prompts = async (count: number) => {
    await using engine = await startEngine(
      (_, index) =>
        index % 2 === 0
          ? {
              calls: [
                { name: "read", arguments: { filePath: "a.txt" } },
                { name: "bash", arguments: { command: `echo ${index}` } },
                { name: "slow", arguments: {} },
              ],
            }
          : { text: "Done.", pieceSize: 1 },
      {
        files: { "a.txt": "x\n" },
        tools: [
          tool(
            "slow",
            async (_args, ctx) => {
              await ctx.metadata({ progress: 1 })
              await ctx.ask({ permission: "bash", patterns: ["rm x"] })
              return { title: "slow", output: "slow" }
            },
            { timeout: 10_000 },
          ),
        ],
      },
    )
    engine.tackle.on("permission.asked", (request) => void request.reply("once"))
    const session = await engine.tackle.sessions.create()
    const signal = new AbortController().signal
    for (let n = 0; n < count; n += 1) expect((await run(engine, { session, signal })).end.exitCode).toBe(0)
  }
  // The first prompts load modules that stay loaded.
  await prompts(1)
  const isPassing = (name: string) => ["TCPSocketWrap", "FSReqCallback"].includes(name)
  await expect.poll(() => held().resources.filter(isPassing)).toEqual([])
  const before = held()
  await prompts(20)
  // Without `poll`, which holds a timer.
  for (let look = 0; look < 100 && !isDeepStrictEqual(held(), before); look += 1) await delay(50)
  expect(held()).toEqual(before)
})

test.skipIf(process.platform !== "linux")("journals a job while it runs", async () => {
  await using engine = await startEngine(
    [
      { calls: [{ name: "bash", arguments: { command: "sleep 0.3 & cat wait.fifo & echo started" } }] },
      { text: "Started." },
    ],
    { permission: { "*": "allow" }, sandbox: "off" },
  )
  execFileSync("mkfifo", [engine.project.path("wait.fifo")])
  const { session } = await run(engine)
  const book = () => readdirSync(engine.project.path(".data/processes"))
  // One entry before the start, one after it.
  const entries = book().map((name) =>
    JSON.parse(readFileSync(engine.project.path(".data/processes", name), "utf8")),
  )
  expect(entries.map(({ sessionID }) => sessionID)).toEqual([session.id, session.id])
  writeFileSync(engine.project.path("wait.fifo"), "end")
  await expect.poll(book, { timeout: 10_000 }).toEqual([])
})

test("refuses work after it is closed", async () => {
  await using engine = await startEngine([{ text: "Hello." }])
  const { session } = await run(engine)
  await engine.tackle.close()
  expect(() => session.prompt("again")).toThrow(EngineClosedError)
  expect(() => session.prompt("again")).toThrow("This engine was closed. To continue, open another engine")
  await expect(session.compact()).rejects.toThrow(EngineClosedError)
  await expect(session.undo()).rejects.toThrow(EngineClosedError)
  await expect(engine.tackle.sessions.create()).rejects.toThrow(EngineClosedError)
  await expect(engine.tackle.callTool({ tool: "list", input: "{}" })).rejects.toThrow(EngineClosedError)
  expect(engine.server.requests).toHaveLength(1)
})

test("ends runs, standalone calls and jobs on close, and waits for them", async () => {
  const ended: string[] = []
  const hang = tool("hang", (_, ctx) => {
    const { promise, reject } = Promise.withResolvers<never>()
    ctx.abort.addEventListener("abort", () => {
      ended.push("tool")
      reject(new Error("stopped"))
    })
    return promise
  })
  const engine = await startEngine([{ calls: [{ name: "hang", arguments: {} }] }], {
    tools: [hang],
    permission: { "*": "allow" },
  })
  const session = await engine.tackle.sessions.create()
  const prompted = session.prompt("go").completed.then(({ status }) => ended.push(status))
  const called = engine.tackle
    .callTool({ tool: "hang", input: "{}" })
    .then(({ state }) => ended.push(state.status))
  await expect.poll(async () => JSON.stringify(await session.messages())).toContain('"running"')
  await engine[Symbol.asyncDispose]()
  expect([...ended].sort()).toEqual(["error", "interrupted", "tool", "tool"])
  await Promise.all([prompted, called])
})

test("may be closed twice, and leaves a given store open", async () => {
  const store = createMemoryStore()
  await using engine = await startEngine([{ text: "Hello." }], { store })
  const { session } = await run(engine)
  await engine.tackle.close()
  await engine.tackle.close()
  expect(await store.session(session.id)).toBeDefined()
})

test("leaves nothing behind if it cannot be opened", async () => {
  const project = await temporaryProject({
    "data/tackle.db": "not a database, but long enough to look like one",
  })
  const before = held().listeners
  await expect(
    createTackle({ directory: project.directory, dataDirectory: project.path("data") }),
  ).rejects.toThrow(/tackle\.db/)
  expect(held().listeners).toEqual(before)
  await project.remove()
})

test("opens without a model, and reports that when it is prompted", async () => {
  const project = await temporaryProject()
  const tackle = await createTackle({
    directory: project.directory,
    dataDirectory: project.path(".data"),
    store: createMemoryStore(),
  })
  const session = await tackle.sessions.create()
  const events: TackleEvent[] = []
  tackle.subscribe((event) => events.push(event))
  const end = await session.prompt("go").completed
  expect(end).toMatchObject({ status: "failed", exitCode: 2 })
  expect(events).toContainEqual(end)
  expect(JSON.stringify(events)).toMatch(/No model is selected/)
  await tackle.close()
  await project.remove()
})

test("checks arguments, permission and output limits of a standalone call", async () => {
  await using engine = await startEngine([], {
    files: { "a.txt": "x\n" },
    limits: { output: { maxLines: 10 } },
    permission: { bash: { "*": "ask", "rm *": "deny" } },
  })
  const call = (name: string, input: unknown) =>
    engine.tackle.callTool({ tool: name, input: typeof input === "string" ? input : JSON.stringify(input) })
  expect((await call("read", { filePath: "a.txt" })).state).toMatchObject({ status: "completed" })
  expect((await call("read", "{broken")).state).toMatchObject({ metadata: { kind: "malformed" } })
  const refused = await call("bash", { command: "rm a.txt" })
  expect(refused).toMatchObject({
    state: { metadata: { kind: "refused" } },
    turn: { refused: [{ by: "rule" }] },
  })
  // A standalone call counts every file as read.
  engine.tackle.on("permission.asked", (request) => void request.reply("once"))
  expect((await call("write", { filePath: "a.txt", content: "y\n" })).state.status).toBe("completed")
  await expect(engine.tackle.callTool({ tool: "read", input: "{}", agent: "nobody" })).rejects.toThrow(
    /nobody/,
  )
})

test("applies the rules of an agent in the options, also after definitions were read again", async () => {
  const permission = { edit: { "docs/*": "allow", "*": "deny" }, bash: "deny" } as const
  await using engine = await startEngine([{ text: "Done." }], {
    permission: { "*": "allow" },
    agents: { reviewer: { permission }, list: { permission: "deny" } },
    agentRules: { reviewer: [{ permission: "bash", pattern: "ls", action: "allow" }] },
    definitions: {
      watched: () => [],
      find: async () => ({ agents: { reviewer: { permission } }, problems: [] }),
    },
  })
  const verdict = async (agent: string, name: string, pattern: string) =>
    (await engine.tackle.explain({ permission: name, patterns: [pattern], agent })).verdict
  for (const time of ["at start", "after definitions were read again"]) {
    expect([time, await verdict("reviewer", "edit", "a.txt")]).toEqual([time, "deny"])
    expect([time, await verdict("reviewer", "bash", "rm x")]).toEqual([time, "deny"])
    const offered = (await engine.tackle.tools({ agent: "reviewer" })).filter(({ offered }) => offered)
    expect(offered.map(({ id }) => id)).not.toContain("bash")
  }
  expect(await verdict("build", "edit", "a.txt")).toBe("allow")
})

test("reports invalid plugins, tool files and skills at the start", async () => {
  const project = await temporaryProject({
    "broken.ts": "throw new Error('broken')",
    "s/SKILL.md": "No front matter",
  })
  onTestFinished(() => project.remove())
  const problems: string[] = []
  const tackle = await createTackle({
    directory: project.directory,
    store: createMemoryStore(),
    plugins: [{ name: "gone", path: project.path("gone.ts") }],
    toolFiles: [project.path("broken.ts")],
    skillFiles: [project.path("s/SKILL.md")],
    tools: ["read", "read"].map((id) => tool(id, async () => ({ title: "", output: "" }))),
    onProblem: (message, error) => problems.push(`${message}: ${error}`),
  })
  onTestFinished(() => tackle.close())
  const all = problems.join("\n")
  for (const pattern of [
    /gone: .*could not be loaded/,
    /broken\.ts: .*broken/,
    /SKILL\.md: .*front matter/,
    /read/,
  ])
    expect(all).toMatch(pattern)
  expect(tackle.problems().length).toBeGreaterThanOrEqual(3)
})

test.each<[object, RegExp]>([
  [{ permissions: { bash: "deny" } }, /no option "permissions". Did you mean permission\?/],
  [{ permission: { bash: "dney" } }, /permission\.bash: expected .*Did you mean "deny"/],
  [{ permission: { bsh: "deny" } }, /"bsh" does not exist.*Did you mean "bash"/],
  [{ agents: { a: { permision: {} } } }, /unknown key "agents\.a\.permision"/],
  [{ agents: { a: { permission: { edit: { "*": "no" } } } } }, /agents\.a\.permission\.edit\.\*: expected/],
  [{ agents: { a: { permission: { edti: "deny" } } } }, /"edti" does not exist.*"edit"/],
  [{ agents: { a: { model: "p/m" } } }, /agents\.a\.model: expected an object/],
  [{ agentRules: { a: { bash: "deny" } } }, /agentRules\.a: expected a list/],
  [{ limits: { stepz: 3 } }, /unknown key "limits\.stepz"/],
  [{ limits: { output: { maxLine: 3 } } }, /unknown key "limits\.output\.maxLine". Did you mean "maxLines"/],
  [{ limits: { subagent: { depth: "1" } } }, /limits\.subagent\.depth: expected a number/],
  [{ experimental: { lsptool: true } }, /unknown key "experimental\.lsptool". Did you mean "lsp_tool"/],
  [{ providers: { p: { modles: {} } } }, /unknown key "providers\.p\.modles". Did you mean "models"/],
  [{ mcp: { a: { type: "local", comand: ["a"] } } }, /unknown key "mcp\.a\.comand"/],
  [{ tenants: { a: { session: 1 } } }, /unknown key "tenants\.a\.session". Did you mean "sessions"/],
  [{ commands: { c: { templat: "x" } } }, /unknown key "commands\.c\.templat"/],
  [{ toolSearch: { maxByte: 1 } }, /unknown key "toolSearch\.maxByte"/],
  [{ sandbox: "on" }, /sandbox: expected "auto", "require" or "off"/],
])("rejects the options %j", async (options, message) => {
  const project = await temporaryProject()
  onTestFinished(() => project.remove())
  const opened = createTackle({ directory: project.directory, store: createMemoryStore(), ...options })
  await expect(opened).rejects.toThrow(message)
  await expect(opened).rejects.toThrow(UsageError)
})

test("accepts names of tools, servers and wildcards in permissions", async () => {
  await using engine = await startEngine([], {
    tools: [tool("bashh", async () => ({ title: "", output: "" }))],
    permission: { bashh: "deny", "gre*": "deny", deploy: "ask" },
  })
  expect(engine.tackle.problems()).toEqual([])
})

test('continues a standalone call after "always"', async () => {
  await using engine = await startEngine([])
  const outcomes: Promise<string>[] = []
  engine.tackle.on("permission.asked", (request) => outcomes.push(request.reply("always")))
  const { state } = await engine.tackle.callTool({ tool: "bash", input: '{"command":"factor 6"}' })
  expect(await Promise.all(outcomes)).toEqual(["applied"])
  expect(state.status).toBe("completed")
})

test("lists waiting requests and accepts one answer", async () => {
  const script = [{ calls: [{ name: "bash", arguments: { command: "touch mark" } }] }, { text: "Done." }]
  await using engine = await startEngine(script, { approvals: true })
  const session = await engine.tackle.sessions.create()
  const completed = session.prompt("go").completed
  await expect.poll(() => engine.tackle.pendingRequests(session.id).length).toBe(1)
  expect(engine.tackle.pendingRequests("ses_other")).toEqual([])
  const [request] = engine.tackle.pendingRequests()
  const id = request?.id ?? ""
  // One call may cause several requests in a row.
  const answered = await Promise.all([
    engine.tackle.reply(id, { reply: "once" }),
    engine.tackle.reply(id, { reply: "reject" }),
  ])
  expect(answered).toEqual(["applied", "already"])
  expect(await engine.tackle.reply("per_nosuch", { reply: "once" })).toBe("unknown")
  engine.tackle.on("permission.asked", (next) => void next.reply("once"))
  for (const next of engine.tackle.pendingRequests()) await engine.tackle.reply(next.id, { reply: "once" })
  expect((await completed).exitCode).toBe(0)
})

test("reports a subscriber that throws without affecting others", async () => {
  const faults: string[] = []
  await using engine = await startEngine([{ text: "Hello." }], {
    onProblem: (message, error) => faults.push(`${message}: ${String(error)}`),
  })
  engine.tackle.on("run.completed", () => {
    throw new Error("not my day")
  })
  expect((await run(engine)).end.text).toBe("Hello.")
  expect(faults).toEqual(["an event subscriber threw an error: Error: not my day"])
})

test("chooses the data directory by its own variable, the shared one, then home", () => {
  expect(defaultDataDirectory({ TACKLE_DATA_DIR: "/d", XDG_DATA_HOME: "/x" })).toBe("/d")
  expect(defaultDataDirectory({ TACKLE_DATA_DIR: "", XDG_DATA_HOME: "/x" })).toBe("/x/tackle")
  expect(defaultDataDirectory({})).toMatch(/\/\.local\/share\/tackle$/)
})

test("registry names all tools, and lists those of an agent and a provider", async () => {
  const counter = tool("counter", async () => ({ title: "", output: "" }), { providers: ["acme"] })
  await using engine = await startEngine([], { tools: [counter] })
  const { registry } = engine.tackle
  expect(registry.ids()).toEqual(expect.arrayContaining(["read", "bash", "counter"]))
  expect((await registry.get("counter")?.init())?.description).toBe("counter")
  expect(registry.get("absent")).toBeUndefined()
  const ids = async (scope: { provider?: string; agent?: string }) =>
    (await registry.tools(scope)).map(({ id }) => id)
  expect(await ids({ provider: "acme" })).toContain("counter")
  expect(await ids({ provider: "other" })).not.toContain("counter")
  expect(await ids({ agent: "build" })).toContain("edit")
  expect(await ids({ agent: "explore" })).not.toContain("edit")
})

test("refuses a request that no code answers, and says once how to answer or allow it", async () => {
  const problems: string[] = []
  const bash = (command: string) => ({ name: "bash", arguments: { command } })
  await using engine = await startEngine(
    [{ calls: [bash("touch one")] }, { calls: [bash("touch two")] }, { text: "Done." }],
    { onProblem: (message, error) => problems.push(`${message}: ${String(error)}`) },
  )
  const session = await engine.tackle.sessions.create()
  const { exitCode, refused } = await session.prompt("go").completed
  expect(exitCode).toBe(3)
  expect(refused.map(({ by }) => by)).toEqual(["no-terminal", "no-terminal"])
  expect(problems).toHaveLength(1)
  expect(problems[0]).toContain('tackle.on("permission.asked", (request) => request.reply("once"))')
  expect(problems[0]).toMatch(
    /or allow the call with createTackle\(\{ permission: \{ "bash": \{ "touch one": "allow" \} \} \}\)/,
  )

  const stop = engine.tackle.on("permission.asked", (request) => void request.reply("once"))
  const call = { tool: "bash", input: { command: "touch three" } }
  expect((await engine.tackle.callTool(call)).state.status).toBe("completed")
  stop()
  stop()
  expect((await engine.tackle.callTool(call)).state.status).toBe("error")
})

test("reads definitions before their first use if the source does not say how they were read", async () => {
  const project = await temporaryProject({})
  onTestFinished(() => project.remove())
  const tackle = await createTackle({
    directory: project.directory,
    dataDirectory: project.path(".data"),
    store: createMemoryStore(),
    definitions: {
      watched: () => [project.path("agents")],
      find: async () => ({ agents: { late: { description: "Found later." } }, problems: [] }),
    },
  })
  onTestFinished(() => tackle.close())
  expect(tackle.agents.has("late")).toBe(false)
  await tackle.tools()
  expect(tackle.agents.get("late")).toMatchObject({ description: "Found later." })
})

test("rejects an unknown option and a directory that does not exist", async () => {
  const here = import.meta.dirname
  const misspelt = { directory: here, permissions: "allow" } as Parameters<typeof createTackle>[0]
  await expect(createTackle(misspelt)).rejects.toThrow('no option "permissions". Did you mean permission?')
  await expect(createTackle({ directory: `${here}/none` })).rejects.toThrow(
    `The directory option of createTackle is ${here}/none, which is not a directory`,
  )
  await expect(createTackle({ directory: import.meta.filename })).rejects.toThrow("is not a directory")
  await expect(createTackle({ directory: here, worktree: `${here}/none` })).rejects.toThrow("worktree option")
  await expect(createTackle({} as { directory: string })).rejects.toThrow("must be the path of a directory")
})

test("keeps the process alive while a request waits, and honors the signal of the prompt", async () => {
  const project = await temporaryProject({})
  onTestFinished(() => project.remove())
  const script = `
    import { createTackle } from ${JSON.stringify(resolve(import.meta.dirname, "../../src/index.ts"))}
    const options = { directory: ".", dataDirectory: "data", model: "tackle/offline", approvals: true }
    const tackle = await createTackle({ ...options, permission: { "*": "ask" } })
    const session = await tackle.sessions.create()
    const { status } = await session.prompt("list the files", { signal: AbortSignal.timeout(500) }).completed
    console.log(status)
    await tackle.close()
  `
  const ended = spawnSync(process.execPath, ["--input-type=module", "-e", script], {
    cwd: project.directory,
    encoding: "utf8",
  })
  expect(ended).toMatchObject({ status: 0, stdout: "interrupted\n" })
})

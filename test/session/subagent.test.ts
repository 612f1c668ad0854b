import { existsSync } from "node:fs"
import { expect, onTestFinished, test } from "vitest"
import type { TackleOptions } from "../../src/engine/options.ts"
import type { TackleEvent } from "../../src/event/events.ts"
import { createMemoryStore } from "../../src/store/memory.ts"
import { temporaryProject } from "../../src/testing/project.ts"
import { startEngine } from "./engine.ts"
import { scriptFor, task } from "./family.ts"
import { resultsOf, run, tool, toolParts } from "./run.ts"

const read = (filePath: string) => ({ name: "read", arguments: { filePath } })
const bash = (command: string) => ({ name: "bash", arguments: { command } })
const files = { "a.txt": "alpha\n", "b.txt": "beta\n" }

test("runs a task in a child session and returns its last text and id", async () => {
  const script = scriptFor({
    go: [{ calls: [task("look")] }, { text: "Done." }],
    look: [{ text: "Looking.", calls: [read("a.txt")] }, { text: "It says alpha." }],
  })
  await using engine = await startEngine(script, { files })
  const { session, end } = await run(engine)
  expect(end).toMatchObject({ status: "completed", text: "Done." })
  const [child] = await engine.tackle.sessions.list({ parentID: session.id })
  expect(child).toMatchObject({ agent: "general", parentID: session.id, title: "do look (@general)" })
  const [result] = await resultsOf(session)
  expect(result).toMatch(new RegExp(`^task_id: ${child?.id} \\(general, 1 call, .*\\)\n\nIt says alpha\\.$`))
  const [part] = await toolParts(session)
  expect(part?.state).toMatchObject({ metadata: { sessionID: child?.id, agent: "general", count: 1 } })
  expect(await engine.tackle.sessions.list()).toHaveLength(1)
})

test("runs tasks of one answer in parallel and shows their calls in the parent's part", async () => {
  let inside = 0
  let most = 0
  const shown: unknown[] = []
  const met = () => most === 2 && shown.length > 0
  const meet = tool("meet", async () => {
    most = Math.max(most, ++inside)
    for (let turn = 0; turn < 500 && !met(); turn += 1)
      await new Promise((resolve) => setTimeout(resolve, 10))
    inside -= 1
    return { title: "met", output: "met" }
  })
  const steps = [{ calls: [{ name: "meet", arguments: {} }] }, { text: "Met." }]
  const script = scriptFor({
    go: [{ calls: [task("one"), task("two")] }, { text: "Done." }],
    one: steps,
    two: steps,
  })
  await using engine = await startEngine(script, { tools: [meet], permission: "allow" })
  engine.tackle.on("part.updated", ({ part }) => {
    if (part.type !== "tool" || part.tool !== "task" || part.state.status !== "running") return
    const { calls } = part.state.metadata ?? {}
    if (JSON.stringify(calls) === '[{"tool":"meet","title":"","status":"running"}]')
      shown.push(part.state.title)
  })
  await run(engine)
  expect(most).toBe(2)
  expect(shown).toContain("do one")
})

test("continues a child by task_id, and refuses foreign ids", async () => {
  let id = ""
  await using engine = await startEngine(
    (request, index) => {
      const script = scriptFor({
        go: [{ calls: [task("look")] }, { text: "Done." }],
        look: [{ text: "It says alpha." }],
        again: [
          { calls: [task("more", { task_id: id }), task("more", { task_id: "ses_none" })] },
          { calls: [task("more", { task_id: id, subagent_type: "explore" })] },
          { text: "Done." },
        ],
        more: [{ text: "It still does." }],
      })
      if (index === 1) expect(JSON.stringify(request.body.messages)).toContain("look")
      return script(request)
    },
    { files },
  )
  const { session } = await run(engine)
  id = (await engine.tackle.sessions.list({ parentID: session.id }))[0]?.id ?? ""
  await run(engine, { session, text: "again" })
  const results = await resultsOf(session)
  expect(results[1]).toContain(`task_id: ${id}`)
  expect(results[1]).toContain("It still does.")
  expect(results[2]).toMatch(/^Error: This session has no task ses_none/)
  expect(results[3]).toMatch(/^Error: Task \S+ belongs to the subagent general, not to explore/)
  const asked = engine.server.requests.find(({ body }) =>
    JSON.stringify(body.messages.at(-1)).includes("more"),
  )
  expect(JSON.stringify(asked?.body.messages)).toContain("It says alpha.")
  expect(await engine.tackle.sessions.list({ parentID: session.id })).toHaveLength(1)
})

test.each<[string, Partial<TackleOptions>, string, RegExp]>([
  ["a rule of the user", { permission: { bash: "deny" } }, "build", /does not exist|unavailable|denied/],
  [
    "the bounds of the agent that asks",
    { permission: { bash: "allow" } },
    "plan",
    /does not exist|unavailable|denied/,
  ],
  [
    "rules of the asking agent, against those of the subagent",
    {
      permission: { bash: "allow" },
      agentRules: {
        build: [{ permission: "bash", pattern: "touch *", action: "deny" }],
        general: [{ permission: "bash", pattern: "*", action: "allow" }],
      },
    },
    "build",
    /denied by a rule/,
  ],
])("a subagent is held by %s", async (_, options, agent, expected) => {
  const script = scriptFor({
    go: [{ calls: [task("make")] }, { text: "Done." }],
    make: [{ calls: [bash("touch made")] }, { text: "Tried." }],
  })
  await using engine = await startEngine(script, options)
  const session = await engine.tackle.sessions.create({ agent })
  const { end } = await run(engine, { session })
  const [child] = await engine.tackle.sessions.list({ parentID: session.id })
  const handle = await engine.tackle.sessions.get(child?.id ?? "")
  expect(handle && (await resultsOf(handle))[0]).toMatch(expected)
  expect(existsSync(engine.project.path("made"))).toBe(false)
  expect(end).toMatchObject({ status: "completed", exitCode: 3, refused: [{ tool: "bash", by: "rule" }] })
})

test("gives explore its tools, with the general rules for commands", async () => {
  const script = scriptFor({
    go: [{ calls: [task("look", { subagent_type: "explore" })] }, { text: "Done." }],
    look: [{ calls: [bash("ls"), bash("node -p 1"), bash("touch made")] }, { text: "Looked." }],
  })
  await using engine = await startEngine(script, { files })
  const asked: string[] = []
  engine.tackle.on("permission.asked", (request) => {
    asked.push(...request.patterns)
    void request.reply("reject")
  })
  await run(engine)
  const names = engine.server.requests[1]?.body.tools?.map((entry) => entry.function.name)
  expect(names).toEqual(["read", "glob", "grep", "list", "bash", "webfetch"])
  expect(asked).toEqual(["node -p 1"])
  expect(existsSync(engine.project.path("made"))).toBe(false)
})

test('names the task in requests; an "always" for the session applies to the family', async () => {
  const done: unknown[] = []
  const mark = tool("mark", ({ name }) => ({ title: "mark", output: String(done.push(name)) }), {
    ask: () => ({ patterns: ["it"], always: ["it"] }),
  })
  const call = (name: string) => ({ name: "mark", arguments: { name } })
  const script = scriptFor({
    go: [{ calls: [task("one")] }, { calls: [task("two"), call("c")] }, { text: "Done." }],
    one: [{ calls: [call("a")] }, { text: "Made." }],
    two: [{ calls: [call("b")] }, { text: "Made." }],
  })
  await using engine = await startEngine(script, { tools: [mark] })
  const asked: unknown[] = []
  engine.tackle.on("permission.asked", (request) => {
    asked.push(request.tool)
    void request.reply("always")
  })
  const { session } = await run(engine)
  const [part] = await toolParts(session)
  const parent = { sessionID: session.id, messageID: part?.messageID, callID: part?.callID, agent: "general" }
  expect(asked).toMatchObject([{ parent }])
  expect(done.sort()).toEqual(["a", "b", "c"])
})

test('answers waiting requests of other subagents by an "always"', async () => {
  const mark = tool("mark", () => ({ title: "mark", output: "marked" }), {
    ask: () => ({ patterns: ["it"], always: ["it"] }),
  })
  const steps = [{ calls: [{ name: "mark", arguments: {} }] }, { text: "Made." }]
  const script = scriptFor({
    go: [{ calls: [task("one"), task("two"), task("three")] }, { text: "Done." }],
    one: steps,
    two: steps,
    three: steps,
  })
  await using engine = await startEngine(script, { tools: [mark] })
  let asked = 0
  engine.tackle.on("permission.asked", (request) => {
    asked += 1
    if (asked === 3) void request.reply("always")
  })
  const sources: string[] = []
  engine.tackle.on("permission.replied", ({ source }) => sources.push(source))
  const { end } = await run(engine)
  expect(end).toMatchObject({ status: "completed", refused: [] })
  expect(sources.sort()).toEqual(["grant", "grant", "user"])
})

test("counts the usage of subagents for the run", async () => {
  const usage = { input: 100, output: 10 }
  const script = scriptFor({
    go: [
      { calls: [task("one")], usage },
      { text: "Done.", usage },
    ],
    one: [{ text: "One.", usage: { input: 1000, output: 1 } }],
  })
  await using engine = await startEngine(script)
  const { end } = await run(engine)
  expect(end.usage).toMatchObject({ input: 1200, output: 21 })
})

test("ends a subagent and its work on an interrupt", async () => {
  const script = scriptFor({
    go: [{ calls: [task("wait")] }, { text: "Done." }],
    wait: [{ calls: [bash("touch began; sleep 60")] }, { text: "Waited." }],
  })
  await using engine = await startEngine(script, { permission: "allow" })
  const controller = new AbortController()
  engine.tackle.on("part.updated", ({ part }) => {
    if (part.type === "tool" && part.tool === "bash" && part.state.status === "running") controller.abort()
  })
  const { session, end } = await run(engine, { signal: controller.signal })
  expect(end).toMatchObject({ status: "interrupted", exitCode: 130 })
  const [child] = await engine.tackle.sessions.list({ parentID: session.id })
  const handle = await engine.tackle.sessions.get(child?.id ?? "")
  for (const each of [session, handle]) {
    const parts = each ? await toolParts(each) : []
    expect(parts.map(({ state }) => state.status)).toEqual(["error"])
  }
})

test.each<[string, Partial<TackleOptions["limits"]>, RegExp]>([
  ["steps", { subagent: { steps: 2 } }, /limit of 2 steps/],
  ["tokens", { subagent: { tokens: 10 } }, /reached its limit of 10 tokens/],
])("a budget of %s ends a task with its partial result", async (_, limits, reason) => {
  const script = scriptFor({
    go: [{ calls: [task("long")] }, { text: "Done." }],
    long: [{ calls: [read("a.txt")] }, { text: "So far: alpha." }],
  })
  await using engine = await startEngine(script, { files, limits: limits ?? {} })
  const { session, end } = await run(engine)
  const [result] = await resultsOf(session)
  expect(result).toMatch(reason)
  expect(result).toMatch(/So far: alpha\.$/)
  expect(end).toMatchObject({ status: "completed", exitCode: 0 })
})

test("ends a task at its time limit, without counting waits for the user", async () => {
  const script = scriptFor({
    go: [{ calls: [task("long")] }, { text: "Done." }],
    long: [
      { text: "First: alpha.", calls: [bash("touch made")] },
      { text: "Then.", calls: [bash("sleep 60")] },
    ],
  })
  await using engine = await startEngine(script, { files, limits: { subagent: { timeMs: 1000 } } })
  engine.tackle.on("permission.asked", (request) => void setTimeout(() => void request.reply("once"), 1300))
  const { session } = await run(engine)
  const [result] = await resultsOf(session)
  expect(result).toMatch(/its time limit of 1 s was reached/)
  expect(result).toMatch(/Then\.$/)
  expect(existsSync(engine.project.path("made"))).toBe(true)
})

test("reports a failed subagent with its id and cause", async () => {
  const script = scriptFor({
    go: [{ calls: [task("break"), task("x", { subagent_type: "nobody" })] }, { text: "Done." }],
    break: [{ status: 400, text: "the model is out" }],
  })
  await using engine = await startEngine(script)
  const { session, end } = await run(engine)
  const [failed, unknown] = await resultsOf(session)
  expect(failed).toMatch(/^Error: The subagent general failed: .*the model is out[\s\S]*\ntask_id: ses_/)
  expect(unknown).toMatch(/^Error: Unknown subagent "nobody"\. Available: explore, general\./)
  expect(end).toMatchObject({ status: "completed", text: "Done." })
})

test("offers task only above the depth limit", async () => {
  const agentRules = { general: [{ permission: "task", pattern: "*", action: "allow" } as const] }
  const script = scriptFor({
    go: [{ calls: [task("one")] }, { text: "Done." }],
    one: [{ calls: [task("two")] }, { text: "One." }],
    two: [{ text: "Two." }],
  })
  for (const [depth, requests] of [
    [1, 4],
    [2, 5],
    [0, 2],
  ] as const) {
    await using engine = await startEngine(script, { agentRules, limits: { subagent: { depth } } })
    await run(engine)
    expect(engine.server.requests).toHaveLength(requests)
    const offered = (index: number) =>
      engine.server.requests[index]?.body.tools?.some((entry) => entry.function.name === "task")
    expect([offered(0), offered(1)]).toEqual([depth > 0, depth > 1])
  }
})

test("keeps the bounds of a child that is prompted directly, and refuses one without its parent", async () => {
  const store = createMemoryStore()
  const script = scriptFor({
    go: [{ calls: [task("one")] }, { text: "Done." }],
    one: [{ text: "One." }],
    make: [{ calls: [bash("touch made")] }, { text: "Tried." }],
  })
  await using engine = await startEngine(script, { store, permission: { bash: "allow" } })
  const session = await engine.tackle.sessions.create({ agent: "plan" })
  await run(engine, { session })
  const [stored] = await engine.tackle.sessions.list({ parentID: session.id })
  const child = await engine.tackle.sessions.get(stored?.id ?? "")
  if (!child) throw new Error("the child session is gone")
  await run(engine, { session: child, text: "make" })
  expect(existsSync(engine.project.path("made"))).toBe(false)

  const orphan = await engine.tackle.sessions.create({ parentID: "ses_gone" })
  const events: TackleEvent[] = []
  engine.tackle.subscribe((event) => events.push(event))
  expect((await run(engine, { session: orphan, text: "make" })).end.status).toBe("failed")
  expect(JSON.stringify(events)).toContain("which no longer exists")
})

test("lets a subagent read a long output of its parent", async () => {
  const long = Array.from({ length: 3000 }, (_, index) => `line ${index}`).join("\n")
  const say = tool("say", () => ({ title: "say", output: long }))
  const data = await temporaryProject()
  onTestFinished(() => data.remove())
  let path = ""
  await using engine = await startEngine(
    (request) => {
      const text = JSON.stringify(request.body.messages)
      path = /Full text: (\S+\.txt)/.exec(text)?.[1] ?? path
      return scriptFor({
        go: [{ calls: [{ name: "say", arguments: {} }] }, { calls: [task("look")] }, { text: "Done." }],
        look: [{ calls: [read(path)] }, { text: "Read." }],
      })(request)
    },
    { tools: [say], permission: { say: "allow" }, dataDirectory: data.directory },
  )
  const { session, end } = await run(engine)
  expect((await resultsOf(session))[0]).toContain("have a subagent read it with task")
  const [stored] = await engine.tackle.sessions.list({ parentID: session.id })
  const child = await engine.tackle.sessions.get(stored?.id ?? "")
  expect(child && (await resultsOf(child))[0]).toContain("line 42")
  expect(end.refused).toEqual([])
})

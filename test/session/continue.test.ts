import { spawn } from "node:child_process"
import { once } from "node:events"
import { expect, onTestFinished, test, vi } from "vitest"
import { createTackle } from "../../src/engine/create-tackle.ts"
import { describeEffect } from "../../src/schema/tool-moves.ts"
import { SessionBusyError } from "../../src/session/handle.ts"
import { createMemoryStore } from "../../src/store/memory.ts"
import { startModelServer } from "../../src/testing/model-server.ts"
import { temporaryProject } from "../../src/testing/project.ts"
import { processScript } from "../process-scripts.ts"
import { startEngine } from "./engine.ts"
import { resultsOf, run, tool, toolParts } from "./run.ts"

test("tells the model the fate of each call after kill -9", {
  timeout: 60_000,
}, async () => {
  await using disposer = new AsyncDisposableStack()
  const server = await startModelServer({
    script: (_, index) =>
      index === 0
        ? {
            text: "I try.",
            calls: [
              { name: "bash", arguments: { command: "echo started > mark; sleep 30" } },
              { name: "write", arguments: { filePath: "b.txt", content: "b" } },
            ],
          }
        : { text: "I see." },
  })
  const project = await temporaryProject()
  disposer.defer(() => server.close())
  disposer.defer(() => project.remove())

  const child = spawn(
    process.execPath,
    [processScript("test/session/prompt-process"), project.directory, server.url],
    {
      stdio: ["ignore", "pipe", "inherit"],
    },
  )
  let printed = ""
  child.stdout.on("data", (chunk: Buffer) => (printed += chunk.toString()))
  await expect.poll(() => printed, { timeout: 25_000 }).toMatch(/running/)
  await expect.poll(() => project.read("mark").catch(() => ""), { timeout: 10_000 }).toBe("started\n")
  child.kill("SIGKILL")
  await once(child, "exit")

  const tackle = await createTackle(optionsFor(project.directory, server.url))
  disposer.defer(() => tackle.close())
  const session = await tackle.sessions.latest()
  if (!session) throw new Error("the session was not kept")
  const { end } = await run({ tackle }, { session, text: "what happened?" })
  expect(end).toMatchObject({ status: "completed", text: "I see." })
  const [ran, waited] = await toolParts(session)
  expect(ran?.state).toMatchObject({
    status: "error",
    error: expect.stringMatching(/may have taken effect/),
    metadata: { kind: "interrupted" },
  })
  expect(waited?.state).toMatchObject({ status: "error", error: expect.stringMatching(/never started/) })
  const sent = JSON.stringify(server.requests.at(-1)?.body.messages)
  expect(sent).toMatch(/may have taken effect[\s\S]*never started/)
  expect(sent).toContain("I try.")
})

function optionsFor(directory: string, url: string) {
  return {
    directory,
    dataDirectory: `${directory}/.data`,
    model: "test/m",
    providers: { test: { options: { baseURL: url, apiKey: "k" }, models: { m: {} } } },
    permission: { "*": "allow" as const },
  }
}

test("marks an unfinished answer as interrupted, and announces the stored state of its texts", async () => {
  const store = createMemoryStore()
  await using first = await startEngine([], { store })
  const { id } = await first.tackle.sessions.create()
  const model = { providerID: "test", modelID: "m" }
  const shared = { sessionID: id, agent: "build", model }
  const part = { sessionID: id, messageID: "msg_2" }
  await store.commit([
    { kind: "message", message: { ...shared, id: "msg_1", role: "user", time: { created: 1 } } },
    {
      kind: "message",
      message: {
        ...shared,
        id: "msg_2",
        role: "assistant",
        parentID: "msg_1",
        time: { created: 2 },
        path: { cwd: "/", root: "/" },
        cost: 0,
        tokens: { input: 0, output: 0, reasoning: 0, cache: { read: 0, write: 0 } },
      },
    },
    {
      kind: "part",
      part: { ...part, id: "prt_1", type: "reasoning", text: "Done.", time: { start: 3, end: 4 } },
    },
    { kind: "part", part: { ...part, id: "prt_2", type: "reasoning", text: "", time: { start: 5 } } },
    { kind: "part", part: { ...part, id: "prt_3", type: "text", text: "", time: { start: 6 } } },
  ])
  const before = await store.sequence(id)
  await using second = await startEngine([{ text: "Hello." }], { store, directory: first.project.directory })
  const session = await second.tackle.sessions.get(id)
  if (!session) throw new Error("the session was not kept")
  await run(second, { session })
  const interrupted = (await session.messages()).find(({ message }) => message.id === "msg_2")
  expect(interrupted?.message).toMatchObject({
    error: { name: "aborted" },
    time: { completed: expect.any(Number) },
  })
  const announced = (await store.changes(id, before)).flatMap(({ change }) =>
    change.kind === "part" && change.part.messageID === "msg_2" ? [change.part] : [],
  )
  expect(announced).toMatchObject([
    { id: "prt_2", text: "", time: { start: 5, end: expect.any(Number) } },
    { id: "prt_3", text: "", time: { start: 6, end: expect.any(Number) } },
  ])
})

test("requires a new read only for files that changed", async () => {
  const store = createMemoryStore()
  const read = (name: string) => ({ name: "read", arguments: { filePath: name } })
  await using first = await startEngine([{ calls: [read("a.txt"), read("b.txt")] }, { text: "Read." }], {
    files: { "a.txt": "old\n", "b.txt": "old\n" },
    store,
  })
  const { session } = await run(first)
  await first.project.write("b.txt", "old, and new\n")
  const edit = (name: string) => ({
    name: "edit",
    arguments: { filePath: name, oldString: "old", newString: "edited" },
  })
  await using second = await startEngine([{ calls: [edit("a.txt"), edit("b.txt")] }, { text: "Done." }], {
    store,
    directory: first.project.directory,
    permission: { edit: "allow" },
  })
  const continued = await second.tackle.sessions.get(session.id)
  if (!continued) throw new Error("the session was not kept")
  await run(second, { session: continued })
  expect(await first.project.read("a.txt")).toBe("edited\n")
  expect(await first.project.read("b.txt")).toBe("old, and new\n")
  expect((await resultsOf(continued)).at(-1)).toMatch(/^Error: .*changed/)
})

test("refuses a second prompt at a time, through any handle", async () => {
  await using engine = await startEngine([{ text: "One.", delayMs: 50 }, { text: "Two." }])
  const session = await engine.tackle.sessions.create()
  const started = session.prompt("one")
  const same = await engine.tackle.sessions.get(session.id)
  expect(() => same?.prompt("two")).toThrow(SessionBusyError)
  expect(() => same?.prompt("two")).toThrow(/busy with a prompt.*interrupt the session/)
  expect((await started.completed).text).toBe("One.")
  expect((await same?.prompt("two").completed)?.text).toBe("Two.")
})

test("accepts a prompt as soon as the last one has ended", async () => {
  await using engine = await startEngine(() => ({ text: "Yes." }))
  const session = await engine.tackle.sessions.create()
  let next: Promise<unknown> | undefined
  const off = engine.tackle.on("run.completed", () => {
    off()
    next = session.prompt("two").completed
  })
  await session.prompt("one").completed
  expect(await next).toMatchObject({ status: "completed" })
})

test("fails only the prompt that names an unknown model, as a usage error", async () => {
  await using engine = await startEngine([{ text: "Fine." }])
  const session = await engine.tackle.sessions.create()
  const wrong = await run(engine, { session, model: "test/nosuch" })
  expect(wrong.end).toMatchObject({ status: "failed", exitCode: 2 })
  expect(wrong.events.find(({ type }) => type === "session.error")).toMatchObject({
    error: { message: expect.stringMatching(/nosuch/) },
  })
  expect((await run(engine, { session })).end).toMatchObject({ exitCode: 0, text: "Fine." })
})

test("rejects an invalid signal without blocking the session", async () => {
  await using engine = await startEngine([{ text: "Fine." }])
  const session = await engine.tackle.sessions.create()
  // An untyped caller could pass this.
  const signal = JSON.parse("{}") as AbortSignal
  expect(() => session.prompt("go", { signal })).toThrow(TypeError)
  expect((await run(engine, { session })).end).toMatchObject({ exitCode: 0, text: "Fine." })
})

test("keeps a model that was named with a prompt", async () => {
  await using engine = await startEngine(() => ({ text: "Fine." }))
  const providers = {
    test: { options: { baseURL: engine.server.url, apiKey: "k" }, models: { m: {}, n: {} } },
  }
  const tackle = await createTackle({
    directory: engine.project.directory,
    dataDirectory: engine.project.path(".data"),
    store: createMemoryStore(),
    model: "test/m",
    providers,
  })
  const session = await tackle.sessions.create()
  for (const model of [undefined, "test/n", undefined])
    await session.prompt("go", model === undefined ? {} : { model }).completed
  await tackle.close()
  expect(engine.server.requests.map(({ body }) => body.model)).toEqual(["m", "n", "n"])
})

test("keeps project grants for later engines until they are revoked", async () => {
  const store = createMemoryStore()
  const script = (_: unknown, index: number) =>
    index % 2 === 0 ? { calls: [{ name: "bash", arguments: { command: "factor 6" } }] } : { text: "Done." }
  let asked = 0
  const open = async (scope: "session" | "project", directory?: string) => {
    const engine = await startEngine(script, { store, ...(directory === undefined ? {} : { directory }) })
    engine.tackle.on("permission.asked", (request) => {
      asked += 1
      request.reply({ reply: "always", scope }).catch(() => request.reply("reject"))
    })
    expect((await run(engine)).end.exitCode).toBe(0)
    return engine
  }
  await using first = await open("session")
  const { directory } = first.project
  await using _second = await open("project", directory)
  expect(asked).toBe(2)
  await using third = await open("project", directory)
  expect(asked).toBe(2)

  // Another process could revoke it like this.
  const granted = await store.grants({ worktree: directory })
  expect(granted.map(({ scope }) => scope)).toEqual(["project"])
  await store.commit(granted.map(({ id }) => ({ kind: "grant.remove", grantID: id })))
  await run(third)
  expect(asked).toBe(3)
})

test("uses the first line of the first prompt as title, and keeps a given title", async () => {
  await using engine = await startEngine(() => ({ text: "Yes." }))
  const { session } = await run(engine, { text: `  ${"word ".repeat(20)}\nsecond line` })
  const title = session.info().title
  expect(title).toMatch(/^(word )+word…$/)
  expect(title.length).toBeLessThanOrEqual(61)
  await run(engine, { session, text: "another" })
  expect((await engine.tackle.sessions.list())[0]?.title).toBe(title)
  const named = await engine.tackle.sessions.create({ title: "Mine" })
  await run(engine, { session: named, text: "go" })
  expect((await engine.tackle.store.session(named.id))?.title).toBe("Mine")
})

test("deletes a session with its children while one runs", async () => {
  await using engine = await startEngine([{ fault: "hang" }])
  const parent = await engine.tackle.sessions.create()
  const child = await engine.tackle.sessions.create({ parentID: parent.id })
  const started = child.prompt("go")
  await expect.poll(() => engine.server.requests.length).toBe(1)
  expect(await engine.tackle.sessions.delete(parent.id)).toBe(true)
  expect((await started.completed).status).toBe("interrupted")
  expect(await engine.tackle.sessions.get(child.id)).toBeUndefined()
  expect(await engine.tackle.sessions.list({ everywhere: true })).toEqual([])
  expect(await engine.tackle.sessions.delete(parent.id)).toBe(false)
})

test("ignores the answer to a request of a deleted session", async () => {
  const script = [{ calls: [{ name: "bash", arguments: { command: "touch made" } }] }, { text: "Done." }]
  await using engine = await startEngine(script, { approvals: true })
  const session = await engine.tackle.sessions.create()
  const started = session.prompt("go")
  await expect.poll(() => engine.tackle.pendingRequests().length).toBe(1)
  const id = engine.tackle.pendingRequests()[0]?.id ?? ""
  await engine.tackle.sessions.delete(session.id)
  expect((await started.completed).status).toBe("interrupted")
  expect(await engine.tackle.reply(id, { reply: "always", scope: "project" })).toBe("already")
  expect(await engine.tackle.grants()).toEqual([])
  expect(engine.tackle.pendingRequests()).toEqual([])
  await expect(engine.project.read("made")).rejects.toThrow()
})

test("returns the last used session of the worktree, without children", async () => {
  await using engine = await startEngine(() => ({ text: "Yes." }))
  expect(await engine.tackle.sessions.latest()).toBeUndefined()
  const first = await engine.tackle.sessions.create()
  const second = await engine.tackle.sessions.create()
  await engine.tackle.sessions.create({ parentID: first.id })
  expect((await engine.tackle.sessions.latest())?.id).toBe(second.id)
  await new Promise((resolve) => setTimeout(resolve, 2))
  await run(engine, { session: first })
  expect((await engine.tackle.sessions.latest())?.id).toBe(first.id)
  await expect(engine.tackle.sessions.create({ agent: "nobody" })).rejects.toThrow(
    /Unknown agent "nobody".*build/,
  )
})

test("knows that a killed call that waited for permission or only read had no effect", async () => {
  const store = createMemoryStore()
  const edit = { name: "write", arguments: { filePath: "a.txt", content: "a" } }
  const seen: string[] = []
  await using engine = await startEngine([{ calls: [edit] }, { text: "Done." }], {
    store,
    permission: { edit: "ask" },
  })
  engine.tackle.on("part.updated", ({ part }) => {
    if (part.type === "tool" && part.state.status === "running") seen.push(describeEffect(part.state))
  })
  engine.tackle.on("permission.asked", (request) => {
    expect(seen).toEqual(["The call had no effect."])
    void request.reply("once")
  })
  expect((await run(engine)).end.status).toBe("completed")
  expect(seen[1]).toMatch(/^The call may have taken effect/)
  expect(await engine.project.read("a.txt")).toBe("a")
})

test("keeps the order of prompts if the clock was ahead when the session was stored", async () => {
  const write = (name: string) => ({
    calls: [{ name: "write", arguments: { filePath: name, content: name } }],
  })
  const stored = createMemoryStore()
  const permission = { edit: "allow" as const }
  await using first = await startEngine([write("a.txt"), { text: "One." }], { store: stored, permission })
  const { session } = await run(first, { text: "first prompt" })

  const store = createMemoryStore()
  const messages = await stored.messages(session.id)
  const aheadMs = 3_600_000
  const ahead = JSON.stringify(messages).replaceAll(
    /(msg|prt)_(\w{9})/g,
    (_, prefix, time) => `${prefix}_${(Number.parseInt(time, 36) + aheadMs).toString(36).padStart(9, "0")}`,
  )
  await store.commit([
    { kind: "session", session: session.info() },
    ...(JSON.parse(ahead) as typeof messages).flatMap(({ message, parts }) => [
      { kind: "message" as const, message },
      ...parts.map((part) => ({ kind: "part" as const, part })),
    ]),
  ])
  await using second = await startEngine([write("b.txt"), { text: "Two." }], {
    store,
    permission,
    directory: first.project.directory,
    dataDirectory: first.project.path(".data"),
  })
  const continued = await second.tackle.sessions.get(session.id)
  if (!continued) throw new Error("the session was not kept")
  await run(second, { session: continued, text: "second prompt" })
  const order = (await continued.messages()).map(({ message }) => message.role)
  expect(order).toEqual(["user", "assistant", "assistant", "user", "assistant", "assistant"])
  const sent = JSON.stringify(second.server.requests.at(-1)?.body.messages)
  expect(sent).toMatch(/first prompt.*One\..*second prompt/)
  expect((await continued.undo()).prompt).toBe("second prompt")
})

test("reports no negative duration if the clock is set back during a run", async () => {
  const real = Date.now.bind(Date)
  const back = tool("back", () => {
    vi.spyOn(Date, "now").mockImplementation(() => real() - 3_600_000)
    return { title: "", output: "done" }
  })
  onTestFinished(() => void vi.restoreAllMocks())
  await using engine = await startEngine([{ calls: [{ name: "back", arguments: {} }] }, { text: "Done." }], {
    tools: [back],
    permission: { "*": "allow" },
  })
  const { session, events, end } = await run(engine)
  const { created, updated } = session.info().time
  expect(updated).toBeGreaterThan(created)
  expect(end.durationMs).toBeGreaterThanOrEqual(0)
  const times = events.map(({ time }) => time)
  expect(times).toEqual(times.toSorted((a, b) => a - b))
  for (const { message, parts } of await session.messages()) {
    const spans = [
      ...(message.role === "assistant" ? [[message.time.created, message.time.completed]] : []),
      ...parts.flatMap((part) =>
        part.type === "tool" && part.state.status === "completed"
          ? [[part.state.time.start, part.state.time.end]]
          : [],
      ),
    ]
    for (const [start = 0, stop = 0] of spans) expect(stop).toBeGreaterThanOrEqual(start)
  }
})

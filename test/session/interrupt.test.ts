import { expect, test } from "vitest"
import type { TackleEvent } from "../../src/event/events.ts"
import type { SessionHandle } from "../../src/session/handle.ts"
import type { Reply } from "../../src/testing/reply.ts"
import { startEngine } from "./engine.ts"
import { run, tool, toolParts } from "./run.ts"

const script: Reply[] = [
  {
    text: "Looking.",
    calls: [
      { name: "read", arguments: { filePath: "a.txt" } },
      { name: "wait", arguments: {} },
      { name: "bash", arguments: { command: "sleep 0.05; echo hello" } },
      { name: "edit", arguments: { filePath: "a.txt", oldString: "one", newString: "two" } },
    ],
    pieceSize: 8,
  },
  { text: "Done.", pieceSize: 2 },
]

const wait = tool("wait", async (_, ctx) => {
  await ctx.metadata({ progress: 1 })
  await new Promise((resolve) => setTimeout(resolve, 20))
  return { title: "wait", output: "waited" }
})

const options = { tools: [wait], files: { "a.txt": "one\n" } }

/** Expects that nothing of a finished session is open. */
async function expectSettled(session: SessionHandle): Promise<void> {
  for (const { message, parts } of await session.messages()) {
    if (message.role === "assistant") expect(message.time.completed).toBeDefined()
    for (const part of parts) {
      if (part.type === "tool") expect(part.state.status).toMatch(/^(completed|error)$/)
      if (part.type === "text" && message.role === "assistant") expect(part.time?.end).toBeDefined()
    }
  }
}

test("closes every part once at any point of an interrupt, and the session continues", async () => {
  for (let at = 0; ; at += 1) {
    await using engine = await startEngine((request) => {
      const text = JSON.stringify(request.body.messages.at(-1))
      if (text.includes("again")) return { text: "Again." }
      return (request.body.messages.at(-1)?.role === "tool" ? script[1] : script[0]) ?? {}
    }, options)
    const session = await engine.tackle.sessions.create()
    const seen: TackleEvent[] = []
    // Each question is answered a moment later, or never.
    engine.tackle.on("permission.asked", (request) => setImmediate(() => void request.reply("once")))
    const stop = engine.tackle.subscribe((event) => {
      if (seen.push(event) === at + 1) void session.abort()
    })
    const end = await session.prompt("go").completed
    stop()
    const ends = seen.filter(({ type }) => type === "run.completed")
    expect(ends).toEqual([end])
    expect(seen.at(-1)).toEqual(end)
    expect(end).toMatchObject(
      end.status === "interrupted" ? { exitCode: 130 } : { status: "completed", text: "Done." },
    )
    await expectSettled(session)
    expect(engine.tackle.pendingRequests()).toEqual([])
    expect((await run(engine, { session, text: "again" })).end).toMatchObject({ exitCode: 0, text: "Again." })
    // The interrupt arrived with the last event or not at all, so there are no further events to try.
    if (end.status !== "interrupted") return expect(at).toBeGreaterThan(20)
  }
})

test("ends before the model is asked if the signal has fired already", async () => {
  await using engine = await startEngine([{ text: "Never." }])
  const session = await engine.tackle.sessions.create()
  const { end } = await run(engine, { session, signal: AbortSignal.abort() })
  expect(end).toMatchObject({ status: "interrupted", exitCode: 130, text: "" })
  expect(engine.server.requests).toEqual([])
  await expectSettled(session)
})

test("does not start calls that were waiting", async () => {
  let started = 0
  const write = tool(
    "first",
    async (_, ctx) => {
      started += 1
      await new Promise((_resolve, reject) => {
        ctx.abort.addEventListener("abort", () => reject(new Error("stopped")))
        void session.abort()
      })
    },
    { serial: true },
  )
  const second = tool("second", async () => ({ title: "", output: String(++started) }))
  await using engine = await startEngine(
    [
      {
        calls: [
          { name: "first", arguments: {} },
          { name: "second", arguments: {} },
          { name: "todoread", arguments: {} },
        ],
      },
    ],
    { tools: [write, second], permission: { "*": "allow" } },
  )
  const session = await engine.tackle.sessions.create()
  const states: string[] = []
  engine.tackle.on("part.updated", ({ part }) => {
    if (part.type !== "tool") return
    states.push(`${part.tool} ${part.state.status}`)
  })
  await session.prompt("go").completed
  expect(started).toBe(1)
  expect(states.filter((state) => state.endsWith("running"))).toEqual(["first running"])
  expect((await toolParts(session)).map(({ state }) => state)).toMatchObject([
    { status: "error", metadata: { kind: "aborted" } },
    { status: "error", metadata: { kind: "aborted" } },
    { status: "error", metadata: { kind: "aborted" } },
  ])
})

test("treats an interrupt during a loop question as an interrupt, not a refusal", async () => {
  const read = { name: "read", arguments: { filePath: "a.txt" } }
  await using engine = await startEngine(() => ({ calls: [read] }), options)
  const session = await engine.tackle.sessions.create()
  engine.tackle.on("permission.asked", () => void session.abort())
  const { end } = await run(engine, { session })
  expect(end).toMatchObject({ status: "interrupted", exitCode: 130, refused: [] })
  expect((await toolParts(session)).at(-1)?.state).toMatchObject({ metadata: { kind: "aborted" } })
})

test("does not run a call when answer and interrupt arrive together", async () => {
  let runs = 0
  const mine = tool("mine", async () => ({ title: "", output: String(++runs) }))
  for (const order of ["answer first", "interrupt first"]) {
    await using engine = await startEngine([{ calls: [{ name: "mine", arguments: {} }] }], { tools: [mine] })
    const session = await engine.tackle.sessions.create()
    const outcomes: Promise<string>[] = []
    engine.tackle.on("permission.asked", (request) => {
      if (order === "answer first") outcomes.push(request.reply("once"))
      void session.abort()
      if (order === "interrupt first") outcomes.push(request.reply("once"))
    })
    expect((await session.prompt("go").completed).status).toBe("interrupted")
    expect(runs).toBe(0)
    expect(engine.tackle.pendingRequests()).toEqual([])
    expect((await toolParts(session))[0]?.state.status).toBe("error")
    await Promise.all(outcomes)
  }
})

test("interrupts the run when the event loop is left early", async () => {
  await using engine = await startEngine([{ text: "word ".repeat(200), pieceSize: 5, pieceDelayMs: 20 }])
  const session = await engine.tackle.sessions.create()
  const started = session.prompt("go")
  for await (const event of started) if (event.type === "part.delta") break
  expect(await started.completed).toMatchObject({ status: "interrupted" })
})

test("ends the run during the wait before a retry", async () => {
  await using engine = await startEngine(() => ({ status: 500, text: "broken" }))
  const session = await engine.tackle.sessions.create()
  engine.tackle.on("part.updated", ({ part }) => {
    if (part.type === "retry") void session.abort()
  })
  const { end } = await run(engine, { session })
  expect(end).toMatchObject({ status: "interrupted", exitCode: 130 })
  expect(engine.server.requests.length).toBe(1)
  await expectSettled(session)
})

import { expect, test } from "vitest"
import * as z from "zod"
import type { TackleEvent } from "../../src/event/events.ts"
import type { PermissionConfig } from "../../src/permission/rules.ts"
import type { ToolPart } from "../../src/schema/part.ts"
import { createMemoryStore } from "../../src/store/memory.ts"
import { define } from "../../src/tool/tool.ts"
import { type Engine, startEngine } from "./engine.ts"

const readA = { name: "read", arguments: { filePath: "a.txt" } }

async function run(engine: Engine, text = "go", options = {}) {
  const session = await engine.tackle.sessions.create()
  const events: TackleEvent[] = []
  const started = session.prompt(text, options)
  for await (const event of started) events.push(event)
  return { session, events, end: await started.completed }
}

function statesOf(events: readonly TackleEvent[]): Map<string, string[]> {
  const states = new Map<string, string[]>()
  for (const event of events) {
    if (event.type !== "part.updated" || event.part.type !== "tool") continue
    const { callID, state } = event.part
    const seen = states.get(callID) ?? []
    if (seen.at(-1) !== state.status) states.set(callID, [...seen, state.status])
  }
  return states
}

function toolParts(events: readonly TackleEvent[]): ToolPart[] {
  const last = new Map<string, ToolPart>()
  for (const event of events) {
    if (event.type === "part.updated" && event.part.type === "tool") last.set(event.part.id, event.part)
  }
  return [...last.values()]
}

test("takes every call through its states, and announces what is stored", async () => {
  await using engine = await startEngine(
    [
      { calls: [readA, { name: "nosuch", arguments: {} }, { name: "read", arguments: "{not json" }] },
      { text: "Done." },
    ],
    { files: { "a.txt": "x\n" } },
  )
  const { session, events } = await run(engine)
  expect([...statesOf(events).values()]).toEqual([
    ["pending", "running", "completed"],
    ["pending", "error"],
    ["pending", "error"],
  ])
  const stored = (await session.messages())
    .flatMap(({ parts }) => parts)
    .filter((part) => part.type === "tool")
  expect(stored).toEqual(toolParts(events))
  const errors = toolParts(events).flatMap(({ state }) => (state.status === "error" ? [state] : []))
  expect(errors[0]?.error).toMatch(/nosuch[\s\S]*read/)
  expect(errors[1]).toMatchObject({ metadata: { kind: "malformed" } })
})

test("sends deltas that add up to a call's input", async () => {
  await using engine = await startEngine([{ calls: [readA], pieceSize: 3 }, { text: "Done." }], {
    files: { "a.txt": "x\n" },
  })
  const { events } = await run(engine)
  const raw = events.flatMap((event) =>
    event.type === "part.delta" && event.field === "raw" ? [event.delta] : [],
  )
  expect(JSON.parse(raw.join(""))).toEqual(readA.arguments)
})

test("forbids calls in the last step, still sends the tools, and ends as a limit", async () => {
  await using engine = await startEngine((_, index) => ({
    calls: [{ name: "read", arguments: { filePath: `${index}.txt` } }],
  }))
  const { end } = await run(engine, "go", { maxSteps: 3 })
  expect(end).toMatchObject({ status: "limit", exitCode: 4 })
  expect(engine.server.requests.length).toBe(3)
  const last = engine.server.requests[2]?.body as unknown as { tool_choice: unknown; tools: unknown[] }
  expect(last.tool_choice).toBe("none")
  expect(last.tools.length).toBeGreaterThan(5)
})

test.each<[string, PermissionConfig]>([
  ["without rules", {}],
  ["if everything is allowed", "allow"],
  ["if a wildcard allows everything", { "*": "allow" }],
])("asks at the third identical call %s, and ends the run after three refusals", async (_, permission) => {
  await using engine = await startEngine(() => ({ calls: [readA] }), {
    files: { "a.txt": "x\n" },
    permission,
  })
  const asked: string[] = []
  engine.tackle.on("permission.asked", (request) => {
    asked.push(request.permission)
    void request.reply("reject")
  })
  const { events, end } = await run(engine)
  expect(asked).toEqual(["doom_loop", "doom_loop", "doom_loop"])
  expect(toolParts(events).map(({ state }) => state.status)).toEqual([
    "completed",
    "completed",
    "error",
    "error",
    "error",
  ])
  expect(end).toMatchObject({ status: "limit", exitCode: 4 })
})

test("asks at the third identical call also if the results change", async () => {
  let count = 0
  const poll = define("poll", {
    description: "Counts.",
    parameters: z.object({ a: z.number(), b: z.number() }),
    polls: () => true,
    execute: async () => ({ title: "poll", output: String(++count) }),
  })
  const spellings = ['{"a":1,"b":2}', '{ "b": 2, "a": 1 }', '{"a":1.0,"b":2}']
  await using engine = await startEngine(
    (_, index) =>
      index < 3 ? { calls: [{ name: "poll", arguments: spellings[index] ?? "" }] } : { text: "Done." },
    { tools: [poll], permission: { poll: "allow" } },
  )
  const asked: unknown[] = []
  engine.tackle.on("permission.asked", (request) => {
    asked.push([request.permission, request.patterns, count])
    void request.reply("once")
  })
  const { end } = await run(engine)
  expect(asked).toEqual([["doom_loop", ["poll"], 2]])
  expect(count).toBe(3)
  expect(end.exitCode).toBe(0)
})

test("converts literals that the model sends as texts, for the permission and the tool", async () => {
  const received: unknown[] = []
  const level = define("level", {
    description: "Sets the level.",
    parameters: z.object({ level: z.literal([1, 2, true]), name: z.string() }),
    execute: async (args) => {
      received.push(args)
      return { title: "level", output: "set" }
    },
  })
  await using engine = await startEngine(
    [{ calls: [{ name: "level", arguments: { level: "2", name: "2" } }] }, { text: "Done." }],
    { tools: [level], permission: { level: { '{"level":2,"name":"2"}': "allow" } } },
  )
  const { events } = await run(engine)
  expect(received).toEqual([{ level: 2, name: "2" }])
  expect(toolParts(events)[0]?.state).toMatchObject({ status: "completed", input: { level: 2, name: "2" } })
})

test("lets a job be polled while its output changes, and asks when it does not", async () => {
  let id = ""
  const job = (action: string, text?: string) => ({
    calls: [{ name: "job", arguments: { action, id, text } }],
  })
  await using engine = await startEngine(
    (request, index) => {
      if (index === 0) return { calls: [{ name: "bash", arguments: { command: "cat", stdin: true } }] }
      id ||= /job_\w+/.exec(JSON.stringify(request.body))?.[0] ?? ""
      if (index <= 6) return index % 2 === 0 ? job("output") : job("input", "more")
      if (index === 7) return job("kill")
      return index <= 10 ? job("output") : { text: "Done." }
    },
    { permission: { bash: "allow" } },
  )
  const asked: string[] = []
  engine.tackle.on("permission.asked", (request) => {
    asked.push(request.permission)
    void request.reply("reject")
  })
  const { events } = await run(engine)
  const states = toolParts(events).map(({ state }) => state.status)
  expect(asked).toEqual(["doom_loop"])
  expect(states).toEqual([...Array(10).fill("completed"), "error"])
})

test.each(["cut", "garbage", "reset", "no-finish"] as const)(
  "gives up on a silent server",
  async (fault) => {
    await using engine = await startEngine(
      (_, index) => (index === 0 ? { text: "half of it", fault, pieceSize: 2 } : { text: "All of it." }),
      { limits: { retry: { maxAttempts: 2 } } },
    )
    const { session, end } = await run(engine)
    expect(end).toMatchObject({ status: "completed", text: "All of it." })
    const parts = (await session.messages()).flatMap(({ parts }) => parts)
    expect(parts.filter((part) => part.type === "retry").length).toBe(1)
    expect(parts.flatMap((part) => (part.type === "text" ? [part.text] : []))).toEqual(["go", "All of it."])
  },
  20_000,
)

test("waits as a 429 asks, and fails at once for a 401", async () => {
  await using engine = await startEngine(() => ({ fault: "hang" }), {
    limits: { retry: { maxAttempts: 1 }, stream: { firstByteMs: 100 } },
  })
  expect((await run(engine)).end).toMatchObject({ status: "failed", exitCode: 1 })
})

test("sends the sampling settings of the agent", async () => {
  await using engine = await startEngine([{ text: "Hello." }], {
    agents: { build: { temperature: 0.2, top_p: 0.4 } },
  })
  await run(engine)
  expect(engine.server.requests[0]?.body).toMatchObject({ temperature: 0.2, top_p: 0.4 })
})

test("does not run a call that the output limit cut, and tells the model", async () => {
  await using limited = await startEngine((_, index) =>
    index === 0 ? { status: 429, headers: { "retry-after": "0" }, text: "slow down" } : { text: "Hello." },
  )
  expect((await run(limited)).end.text).toBe("Hello.")
  await using refused = await startEngine(() => ({ status: 401, text: "no such key" }))
  const { events, end } = await run(refused)
  expect(end).toMatchObject({ status: "failed", exitCode: 1 })
  expect(refused.server.requests.length).toBe(1)
  expect(events.find((event) => event.type === "session.error")).toMatchObject({
    error: { name: "auth", status: 401 },
  })
})

test("withdraws a waiting question on an interrupt", async () => {
  await using engine = await startEngine([
    { calls: [{ name: "write", arguments: '{"filePath":"a.txt","content":"half' }], finish: "length" },
    { text: "Done." },
  ])
  const { events } = await run(engine)
  const [part] = toolParts(events)
  expect(part?.state).toMatchObject({ status: "error" })
  expect(part?.state.status === "error" && part.state.error).toMatch(/output limit/)
})

test.each([
  ["while nothing came", { fault: "hang" as const }],
  ["in the middle of the text", { text: "slowly ".repeat(50), pieceSize: 7, pieceDelayMs: 20 }],
  ["in the middle of a call", { calls: [readA], pieceSize: 1, pieceDelayMs: 30 }],
  ["while a command runs", { calls: [{ name: "bash", arguments: { command: "sleep 30" } }] }],
])("closes every part on an interrupt %s, and the session continues", async (_, reply) => {
  await using engine = await startEngine((_, index) => (index === 0 ? reply : { text: "Again." }), {
    files: { "a.txt": "x" },
    permission: { bash: "allow" },
  })
  const session = await engine.tackle.sessions.create()
  const started = session.prompt("go")
  setTimeout(() => void session.abort(), 300)
  expect(await started.completed).toMatchObject({ status: "interrupted", exitCode: 130 })
  for (const { message, parts } of await session.messages()) {
    if (message.role === "assistant") expect(message.time.completed).toBeDefined()
    for (const part of parts)
      if (part.type === "tool") expect(["completed", "error"]).toContain(part.state.status)
  }
  expect(await session.prompt("again").completed).toMatchObject({ status: "completed", text: "Again." })
})

test("ends only the call when a tool throws, returns nonsense or lets an error escape", async () => {
  await using engine = await startEngine([
    { calls: [{ name: "bash", arguments: { command: "rm x" } }] },
    { text: "Again." },
  ])
  const session = await engine.tackle.sessions.create()
  engine.tackle.on("permission.asked", () => void session.abort())
  expect((await session.prompt("go").completed).status).toBe("interrupted")
  expect(engine.tackle.pendingRequests()).toEqual([])
})

test("restores read files and sends the history again in a continued session", async () => {
  const faults: string[] = []
  const tool = (id: string, execute: () => Promise<unknown>) =>
    define(id, {
      description: id,
      parameters: z.object({}),
      execute: execute as () => Promise<{ title: string; output: string }>,
    })
  const tools = [
    tool("throws", () => Promise.reject(new Error("it broke"))),
    tool("nonsense", async () => 7),
    tool("unawaited", async () => {
      void Promise.reject(new Error("not awaited"))
      setTimeout(() => {
        throw new Error("later")
      }, 5)
      return { title: "ok", output: "fine" }
    }),
  ]
  await using engine = await startEngine(
    [{ calls: tools.map(({ id }) => ({ name: id, arguments: {} })) }, { text: "Done.", delayMs: 100 }],
    {
      tools,
      permission: { "*": "allow" },
      onProblem: (message, error) => faults.push(`${message}: ${String(error)}`),
    },
  )
  const { events, end } = await run(engine)
  expect(toolParts(events).map(({ state }) => state.status)).toEqual(["error", "error", "completed"])
  expect(end.exitCode).toBe(0)
  expect(faults.join("\n")).toMatch(/unawaited.*not awaited[\s\S]*unawaited.*later/)
})

test("a continued session knows what was read, and history is sent again", async () => {
  const store = createMemoryStore()
  await using first = await startEngine([{ calls: [readA] }, { text: "Read." }], {
    files: { "a.txt": "old\n" },
    store,
  })
  const { session } = await run(first)
  await using second = await startEngine(
    [
      { calls: [{ name: "edit", arguments: { filePath: "a.txt", oldString: "old", newString: "new" } }] },
      { text: "Done." },
    ],
    { store, directory: first.project.directory, permission: { edit: "allow" } },
  )
  const again = await second.tackle.sessions.get(session.id)
  const end = await again?.prompt("now change it").completed
  expect(end?.exitCode).toBe(0)
  expect(await first.project.read("a.txt")).toBe("new\n")
  expect(JSON.stringify(second.server.requests[0]?.body)).toContain("1→old")
})

test("compares the results of polling calls in a replay, as in the recorded run", async () => {
  let count = 0
  const turns = [
    { name: "job", arguments: { action: "list" } },
    { name: "todowrite", arguments: { todos: [{ content: "Wait", status: "pending" }] } },
  ]
  await using engine = await startEngine(
    (_, index) => {
      const call = index < 6 ? turns[index % 2] : undefined
      return call ? { calls: [call] } : { text: "Done." }
    },
    {
      recorded: ({ tool, input }) => ({
        ...{ status: "completed", input, title: tool, metadata: {}, time: { start: 0, end: 0 } },
        output: tool === "job" ? String(++count) : "1 open",
      }),
    },
  )
  const asked: string[] = []
  engine.tackle.on("permission.asked", (request) => {
    asked.push(request.permission)
    void request.reply("reject")
  })
  const { end } = await run(engine)
  expect(count).toBe(3)
  expect(asked).toEqual([])
  expect(end.exitCode).toBe(0)
})

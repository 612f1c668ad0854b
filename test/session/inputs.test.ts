import { describe, expect, test } from "vitest"
import { createTackle } from "../../src/engine/create-tackle.ts"
import type { TackleOptions } from "../../src/engine/options.ts"
import type { Tackle } from "../../src/engine/tackle.ts"
import type { TackleEvent } from "../../src/event/events.ts"
import type { SessionHandle } from "../../src/session/handle.ts"
import { InputConflictError, InputEndedError } from "../../src/session/inputs.ts"
import { createMemoryStore } from "../../src/store/memory.ts"
import { type Script, startModelServer } from "../../src/testing/model-server.ts"
import { temporaryProject } from "../../src/testing/project.ts"
import { orAbort } from "../../src/util/abort.ts"
import { UsageError } from "../../src/util/errors.ts"
import { startEngine } from "./engine.ts"
import { tool } from "./run.ts"

/** Returns the user's texts and the model's texts and calls of a session, in order. */
async function talk(session: SessionHandle): Promise<string[]> {
  return (await session.messages()).flatMap(({ message, parts }) =>
    parts.flatMap((part) => {
      if (part.type === "text") return [`${message.role === "user" ? "user" : "model"}: ${part.text}`]
      return part.type === "tool" ? [`call: ${part.tool}`] : []
    }),
  )
}

/** A tool that waits until the test opens it. */
function gate() {
  const reached = Promise.withResolvers<void>()
  const open = Promise.withResolvers<void>()
  const wait = tool("wait", async (_, { abort }) => {
    reached.resolve()
    await orAbort(open.promise, abort)
    return { title: "", output: "waited" }
  })
  return { wait, reached: reached.promise, open: () => open.resolve() }
}

/** A model that calls `wait` if the user's last text is "work", and otherwise repeats the last text. */
const script: Script = ({ body: { messages } }) => {
  const last = messages.at(-1)
  const text = typeof last?.content === "string" ? last.content : JSON.stringify(last?.content)
  if (last?.role === "user" && text.includes("work")) return { calls: [{ name: "wait", arguments: {} }] }
  return { text: last?.role === "user" ? `heard ${text}` : "done" }
}

async function engineWithGate() {
  const { wait, reached, open } = gate()
  const engine = await startEngine(script, { tools: [wait], permission: { "*": "allow" } })
  return { engine, session: await engine.tackle.sessions.create(), reached, open }
}

test("runs an input whose write is sent twice, because its answer was lost", async () => {
  const store = createMemoryStore()
  await using engine = await startEngine(script, {
    store: {
      ...store,
      async updateInputs(sessionID, named, ...rest) {
        const first = await store.updateInputs(sessionID, named, ...rest)
        return named === undefined ? first : store.updateInputs(sessionID, named, ...rest)
      },
    },
  })
  const session = await engine.tackle.sessions.create()
  await session.send("hello")
  expect(await session.wait()).toMatchObject({ status: "completed", text: "heard hello" })
})

test("announces the end of a run that is stopped between two of its inputs", async () => {
  const store = createMemoryStore()
  await using engine = await startEngine(script, { store })
  const session = await engine.tackle.sessions.create()
  const input = { sessionID: session.id, seq: 0, digest: "", time: { created: 1 } } as const
  await store.updateInputs(session.id, undefined, () => [
    { ...input, id: "inp_1", text: "one", position: 1, delivery: "steer", state: "pending" },
    { ...input, id: "inp_2", text: "two", position: 2, delivery: "steer", state: "pending" },
  ])
  const seen: string[] = []
  engine.tackle.subscribe(({ type }) => {
    seen.push(type)
    if (type === "message.created") void session.abort()
  })
  await session.inputs.resume()
  await expect.poll(() => seen).toContain("run.completed")
  expect(await talk(session)).toEqual(["user: one"])
  expect(await session.inputs.list()).toMatchObject([{ id: "inp_2" }])
})

test("runs an input of an idle session", async () => {
  await using engine = await startEngine(script)
  const session = await engine.tackle.sessions.create()
  const receipt = await session.send("hello")
  expect(receipt).toEqual({ id: expect.stringMatching(/^inp_/), seq: 2, state: "pending" })
  expect(await session.wait()).toMatchObject({ status: "completed", text: "heard hello" })
  expect(await session.inputs.list()).toEqual([])
  expect(await talk(session)).toEqual(["user: hello", "model: heard hello"])
})

test("delivers steering inputs between two steps, after the results of all calls", async () => {
  const { engine, session, reached, open } = await engineWithGate()
  await using _ = engine
  await session.send("work")
  await reached
  await session.send("first", { delivery: "steer" })
  await session.send("second", { delivery: "steer" })
  open()
  await session.wait()
  expect(await talk(session)).toEqual([
    "user: work",
    "call: wait",
    "user: first",
    "user: second",
    "model: heard second",
  ])
  const roles = engine.server.requests.at(-1)?.body.messages.map(({ role }) => role)
  expect(roles?.slice(-4)).toEqual(["assistant", "tool", "user", "user"])
})

test("delivers queued inputs one by one, each in its own run after the present one", async () => {
  const { engine, session, reached, open } = await engineWithGate()
  await using _ = engine
  const runs: string[] = []
  engine.tackle.on("run.completed", ({ text }) => runs.push(text))
  await session.send("work")
  await reached
  await session.send("a", { delivery: "queue" })
  await session.send("b", { delivery: "queue" })
  expect((await session.inputs.list()).map(({ text }) => text)).toEqual(["a", "b"])
  open()
  await session.wait()
  expect(runs).toEqual(["done", "heard a", "heard b"])
})

test("an urgent input interrupts the run and goes before all others", async () => {
  const { engine, session, reached } = await engineWithGate()
  await using _ = engine
  const runs: string[] = []
  engine.tackle.on("run.completed", ({ status, text }) => runs.push(`${status} ${text}`))
  await session.send("work")
  await reached
  await session.send("later", { delivery: "queue" })
  await session.send("stop that", { delivery: "now" })
  await session.wait()
  expect(runs).toEqual(["interrupted ", "completed heard stop that", "completed heard later"])
})

test("a steering input that arrives at the last step becomes the next run", async () => {
  const late = Promise.withResolvers<SessionHandle>()
  let sent = false
  await using engine = await startEngine(async (request, ...rest) => {
    if (!sent) {
      sent = true
      await (await late.promise).send("too late?", { delivery: "steer" })
    }
    return typeof script === "function" ? script(request, ...rest) : script
  })
  const session = await engine.tackle.sessions.create()
  late.resolve(session)
  await session.send("hello")
  await session.wait()
  expect(await talk(session)).toEqual([
    "user: hello",
    "model: heard hello",
    "user: too late?",
    "model: heard too late?",
  ])
})

describe("the id of an input", () => {
  test("makes a second send return the first receipt, also after the delivery", async () => {
    await using engine = await startEngine(script)
    const session = await engine.tackle.sessions.create()
    const first = await session.send("hello", { id: "mine" })
    expect(await session.send("hello", { id: "mine" })).toMatchObject({ id: "mine", seq: first.seq })
    await session.wait()
    expect(await session.send("hello", { id: "mine" })).toEqual({ ...first, state: "promoted" })
    await session.wait()
    expect(engine.server.requests).toHaveLength(1)
  })

  test("refuses another content, delivery or file", async () => {
    await using engine = await startEngine(script)
    const session = await engine.tackle.sessions.create()
    await session.send("hello", { id: "mine" })
    for (const [text, more] of [
      ["hallo", {}],
      ["hello", { delivery: "queue" }],
      ["hello", { files: [{ mime: "text/plain", url: "data:text/plain,x" }] }],
    ] as const)
      await expect(session.send(text, { id: "mine", ...more })).rejects.toThrow(InputConflictError)
    await session.wait()
    expect(engine.server.requests).toHaveLength(1)
  })

  test.each(["", "a b", "x".repeat(201), "a/b"])("refuses %j", async (id) => {
    await using engine = await startEngine(script)
    const session = await engine.tackle.sessions.create()
    await expect(session.send("hello", { id })).rejects.toThrow(UsageError)
  })
})

test("refuses an empty input", async () => {
  await using engine = await startEngine(script)
  const session = await engine.tackle.sessions.create()
  await expect(session.send("  ")).rejects.toThrow(/empty/)
})

test("a pending input can be edited, moved, held, released and withdrawn", async () => {
  const { engine, session, reached, open } = await engineWithGate()
  await using _ = engine
  await session.send("work")
  await reached
  for (const id of ["a", "b", "c", "d"]) await session.send(id, { id, delivery: "queue" })
  await session.inputs.edit("a", { text: "A" })
  await session.inputs.edit("c", { position: 0 })
  await session.inputs.edit("b", { held: true })
  expect(await session.inputs.withdraw("d")).toMatchObject({ state: "withdrawn" })
  const listed = (await session.inputs.list()).map(({ text, held }) => [text, held])
  expect(listed).toEqual([
    ["c", undefined],
    ["A", undefined],
    ["b", true],
  ])
  open()
  await session.wait()
  const heard = async () => (await talk(session)).filter((line) => line.startsWith("model: heard"))
  expect(await heard()).toEqual(["model: heard c", "model: heard A"])
  await session.inputs.edit("b", { held: false })
  await session.wait()
  expect(await heard()).toEqual(["model: heard c", "model: heard A", "model: heard b"])
  await expect(session.inputs.edit("b", { text: "x" })).rejects.toThrow(InputEndedError)
  await expect(session.inputs.withdraw("d")).rejects.toThrow(InputEndedError)
  await expect(session.inputs.withdraw("nobody")).rejects.toThrow(/no input nobody/)
})

describe("an interrupt", () => {
  test("stops the run and keeps the queue until the next input", async () => {
    const { engine, session, reached } = await engineWithGate()
    await using _ = engine
    await session.send("work")
    await reached
    await session.send("later", { delivery: "queue" })
    expect(await session.interrupt()).toEqual([])
    expect(await session.wait()).toMatchObject({ status: "interrupted" })
    expect(await session.inputs.list()).toMatchObject([{ text: "later", paused: true }])
    await session.send("correction")
    await session.wait()
    expect((await talk(session)).filter((line) => line.startsWith("model: heard"))).toEqual([
      "model: heard correction",
      "model: heard later",
    ])
  })

  test("returns the withdrawn queue with `clear`", async () => {
    const { engine, session, reached } = await engineWithGate()
    await using _ = engine
    await session.send("work")
    await reached
    const files = [{ mime: "text/plain", url: "data:text/plain,x" }]
    await session.send("later", { delivery: "queue", files })
    expect(await session.interrupt({ clear: true })).toMatchObject([{ text: "later", state: "withdrawn" }])
    expect(await session.inputs.list()).toEqual([])
  })

  test("`resume` continues the queue", async () => {
    const { engine, session, reached } = await engineWithGate()
    await using _ = engine
    await session.send("work")
    await reached
    await session.send("later", { delivery: "queue" })
    await session.interrupt()
    await session.inputs.resume()
    expect(await session.wait()).toMatchObject({ text: "heard later" })
  })
})

test("an input never answers a permission request", async () => {
  await using engine = await startEngine(script, { tools: [gate().wait], approvals: true })
  const session = await engine.tackle.sessions.create()
  const asked = new Promise((resolve) => engine.tackle.on("permission.asked", resolve))
  await session.send("work")
  await asked
  for (const delivery of ["steer", "queue"] as const) await session.send("yes", { delivery })
  expect(engine.tackle.pendingRequests(session.id)).toHaveLength(1)
  expect(await talk(session)).toEqual(["user: work", "call: wait"])
})

test("holds an input whose run cannot start, with the reason", async () => {
  await using engine = await startEngine(script)
  const session = await engine.tackle.sessions.create()
  const command = { name: "x", template: "hello", arguments: "", agent: "nobody" }
  await session.send("/x", { command })
  expect(await session.wait()).toMatchObject({ status: "failed" })
  expect(await session.inputs.list()).toMatchObject([
    { held: true, problem: expect.stringContaining("nobody") },
  ])
  expect(engine.server.requests).toEqual([])
  await session.send("hello")
  expect(await session.wait()).toMatchObject({ status: "completed" })
})

test("a command runs alone, after the run", async () => {
  const { engine, session, reached, open } = await engineWithGate()
  await using _ = engine
  await session.send("work")
  await reached
  await session.send("/say", { command: { name: "say", template: "say $1", arguments: "it" } })
  await session.send("steered")
  open()
  await session.wait()
  expect(await talk(session)).toEqual([
    "user: work",
    "call: wait",
    "model: done",
    "user: /say",
    "user: say it",
    expect.stringContaining("say it"),
    "user: steered",
    "model: heard steered",
  ])
})

/** Several engines on one database, as in several processes. */
async function severalEngines(count: number, more: Partial<TackleOptions> = {}) {
  const disposer = new AsyncDisposableStack()
  const project = await temporaryProject()
  disposer.defer(() => project.remove())
  const server = await startModelServer({ script })
  disposer.defer(() => server.close())
  const engines: Tackle[] = []
  for (let index = 0; index < count; index += 1) {
    const tackle = await createTackle({
      directory: project.directory,
      dataDirectory: project.path(".data"),
      model: "test/m",
      providers: { test: { options: { baseURL: server.url, apiKey: "k" }, models: { m: {} } } },
      ...more,
    })
    disposer.defer(() => tackle.close())
    engines.push(tackle)
  }
  const [first] = engines
  const session = await first?.sessions.create()
  const handles: SessionHandle[] = []
  for (const tackle of engines) {
    const handle = await tackle.sessions.get(session?.id ?? "")
    if (handle) handles.push(handle)
  }
  return { server, handles, [Symbol.asyncDispose]: () => disposer.disposeAsync() }
}

describe("two engines on one session", () => {
  test("the one that runs it delivers the steering input of the other", async () => {
    const { wait, reached, open } = gate()
    await using place = await severalEngines(2, { tools: [wait], permission: { "*": "allow" } })
    const [first, second] = place.handles
    if (!first || !second) throw new Error("the engines do not see the session")
    await first.send("work")
    await reached
    await second.send("steered")
    open()
    await Promise.all([first.wait(), second.wait()])
    expect(await talk(second)).toEqual(["user: work", "call: wait", "user: steered", "model: heard steered"])
  })

  test("an urgent input of the other interrupts the run", async () => {
    const { wait, reached } = gate()
    await using place = await severalEngines(2, { tools: [wait], permission: { "*": "allow" } })
    const [first, second] = place.handles
    if (!first || !second) throw new Error("the engines do not see the session")
    await first.send("work")
    await reached
    await second.send("stop that", { delivery: "now" })
    await Promise.all([first.wait(), second.wait()])
    expect((await talk(second)).slice(-2)).toEqual(["user: stop that", "model: heard stop that"])
  })

  test("deliver each input once, at any time and from any sender", async () => {
    await using place = await severalEngines(3)
    const deliveries = ["steer", "queue", "queue"] as const
    const sent: string[] = []
    await Promise.all(
      place.handles.map(async (handle, engine) => {
        for (let index = 0; index < 8; index += 1) {
          const text = `input ${engine}-${index}.`
          sent.push(text)
          await handle.send(text, { delivery: deliveries[index % 3] })
          await new Promise((resolve) => setTimeout(resolve, index * 7))
        }
      }),
    )
    for (const handle of place.handles) await handle.wait()
    const [handle] = place.handles
    if (!handle) throw new Error("no engine")
    expect(await handle.inputs.list()).toEqual([])
    const users = (await talk(handle)).filter((line) => line.startsWith("user: "))
    expect(users.sort()).toEqual(sent.map((text) => `user: ${text}`).sort())
  })
})

test("the queue survives a restart with its files, and is delivered once", async () => {
  const project = await temporaryProject()
  const server = await startModelServer({ script })
  const { wait, reached } = gate()
  const options = {
    directory: project.directory,
    dataDirectory: project.path(".data"),
    model: "test/m",
    providers: { test: { options: { baseURL: server.url, apiKey: "k" }, models: { m: {} } } },
    tools: [wait],
    permission: { "*": "allow" },
  } as const
  const first = await createTackle(options)
  const session = await first.sessions.create()
  await session.send("work")
  await reached
  const files = [{ mime: "text/plain", url: `data:text/plain;base64,${btoa("attached")}`, filename: "a.txt" }]
  await session.send("held over", { id: "mine", delivery: "queue", files })
  await first.close()

  const second = await createTackle(options)
  const same = await second.sessions.get(session.id)
  expect(await same?.inputs.list()).toMatchObject([{ id: "mine", text: "held over", files }])
  await same?.inputs.resume()
  await same?.wait()
  const sent = server.requests.map(({ body }) => JSON.stringify(body.messages.at(-1)))
  expect(sent.filter((text) => text.includes("held over"))).toEqual([expect.stringContaining("attached")])
  expect(await same?.inputs.list()).toEqual([])
  expect(await same?.send("held over", { id: "mine", delivery: "queue", files })).toMatchObject({
    state: "promoted",
  })
  await second.close()
  await server.close()
  await project.remove()
})

test("another engine delivers the input of an engine that closed", async () => {
  const store = createMemoryStore()
  const { wait, reached } = gate()
  const events: TackleEvent[] = []
  await using first = await startEngine(script, { store, tools: [wait], permission: { "*": "allow" } })
  const session = await first.tackle.sessions.create()
  await session.send("work")
  await reached
  await session.send("later", { delivery: "queue" })
  await session.abort()
  await using second = await startEngine(script, { store })
  second.tackle.subscribe((event) => events.push(event))
  const same = await second.tackle.sessions.get(session.id)
  await same?.inputs.resume()
  expect(await same?.wait()).toMatchObject({ text: "heard later" })
})

import fc from "fast-check"
import { expect, test } from "vitest"
import { createTackle } from "../../src/engine/create-tackle.ts"
import { createBus } from "../../src/event/bus.ts"
import type { Message } from "../../src/schema/message.ts"
import type { Part } from "../../src/schema/part.ts"
import { type SessionEvent, streamSessionEvents } from "../../src/session/session-events.ts"
import { createMemoryStore } from "../../src/store/memory.ts"
import { type Store, StoreUnreachableError } from "../../src/store/store.ts"
import { startModelServer } from "../../src/testing/model-server.ts"
import { temporaryProject } from "../../src/testing/project.ts"
import { aSession } from "../suites/records.ts"
import { startEngine } from "./engine.ts"
import { tool } from "./run.ts"

/** A view of a session that knows only its events. */
function createView() {
  const messages = new Map<string, Message>()
  const parts = new Map<string, Part>()
  const seen: number[] = []
  return {
    seen,
    apply(event: SessionEvent) {
      if (event.seq !== undefined && event.type !== "reset") seen.push(event.seq)
      if (event.type === "message.created" || event.type === "message.updated")
        messages.set(event.message.id, event.message)
      if (event.type === "part.updated") parts.set(event.part.id, structuredClone(event.part))
      if (event.type === "part.removed") parts.delete(event.partID)
      if (event.type === "part.delta") {
        const part = parts.get(event.partID)
        if (part?.type === "text" || part?.type === "reasoning") part.text += event.delta
      }
    },
    /** The messages as the store returns them. */
    get messages() {
      return [...messages.values()]
        .sort((a, b) => (a.id < b.id ? -1 : 1))
        .map((message) => ({
          message,
          parts: [...parts.values()]
            .filter(({ messageID }) => messageID === message.id)
            .sort((a, b) => (a.id < b.id ? -1 : 1)),
        }))
    },
  }
}

/** Reads events until the run ends and the reader knows the last change. */
async function readToEnd(events: AsyncIterable<SessionEvent>, sequence: () => Promise<number>) {
  const view = createView()
  let last = 0
  for await (const event of events) {
    view.apply(event)
    last = event.seq ?? last
    if (event.type === "run.completed" && last >= (await sequence())) break
  }
  return view
}

const note = tool("note", () => ({ title: "", output: "noted" }))

function talkative() {
  return startEngine(
    ({ body: { messages } }) =>
      messages.at(-1)?.role === "user"
        ? { text: "I will note it.", calls: [{ name: "note", arguments: {} }] }
        : { text: "All is noted now." },
    { tools: [note], permission: { "*": "allow" } },
  )
}

test("a reader from the start has the same messages as the store", async () => {
  await using engine = await talkative()
  const session = await engine.tackle.sessions.create()
  const events = session.events({ after: 0 })
  await session.send("go")
  const view = await readToEnd(events, () => engine.tackle.store.sequence(session.id))
  expect(view.messages).toEqual(await session.messages())
  expect(view.seen).toEqual(view.seen.toSorted((a, b) => a - b))
  expect(new Set(view.seen).size).toBe(view.seen.length)
})

test("a reader that leaves and returns at any event misses nothing and receives nothing twice", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 12 }), { maxLength: 5 }), async (breaks) => {
      await using engine = await talkative()
      const session = await engine.tackle.sessions.create()
      const view = createView()
      let after = 0
      let ended = false
      await session.send("go")
      const end = session.wait().then(() => {
        ended = true
      })
      for (const count of [...breaks, Number.POSITIVE_INFINITY]) {
        let left = count
        const leave = new AbortController()
        void end.then(() => setTimeout(() => leave.abort(), 20))
        for await (const event of session.events({ after, signal: leave.signal })) {
          view.apply(event)
          after = event.seq ?? after
          left -= 1
          if (left <= 0) break
        }
      }
      expect(ended).toBe(true)
      expect(view.messages).toEqual(await session.messages())
      expect(view.seen).toEqual(view.seen.toSorted((a, b) => a - b))
    }),
    { numRuns: 15 },
  )
})

test("starts with the next event by default", async () => {
  await using engine = await talkative()
  const session = await engine.tackle.sessions.create()
  await session.send("go")
  await session.wait()
  const leave = new AbortController()
  const events = session.events({ signal: leave.signal })
  const first = events.next()
  await engine.tackle.store.sequence(session.id)
  await session.send("again")
  expect((await first).value).toMatchObject({ type: "input.updated", input: { text: "again" } })
  leave.abort()
  await session.wait()
})

test("resets a reader that asks for a number from the future", async () => {
  await using engine = await talkative()
  const session = await engine.tackle.sessions.create()
  const heard: SessionEvent[] = []
  for await (const event of session.events({ after: 99 })) heard.push(event)
  expect(heard).toEqual([{ type: "reset", sessionID: session.id, seq: 1, reason: "unknown" }])
})

test("resets a slow reader, which misses nothing after it reconnects", async () => {
  await using engine = await talkative()
  const session = await engine.tackle.sessions.create()
  const events = session.events({ after: 0, maxWaiting: 3 })
  const view = createView()
  const first = await events.next()
  if (!first.done) view.apply(first.value)
  await session.send("go")
  await session.wait()
  const heard: SessionEvent[] = []
  for await (const event of events) heard.push(event)
  const [reset] = heard
  expect(heard).toEqual([{ type: "reset", sessionID: session.id, seq: expect.any(Number), reason: "behind" }])
  const leave = new AbortController()
  for await (const event of session.events({ after: reset?.seq ?? 0, signal: leave.signal })) {
    view.apply(event)
    if (event.seq === (await engine.tackle.store.sequence(session.id))) leave.abort()
  }
  expect(view.messages).toEqual(await session.messages())
})

test("sends the history of a session that is longer than the limit for slow readers", async () => {
  await using engine = await talkative()
  const session = await engine.tackle.sessions.create()
  await session.send("go")
  await session.wait()
  const present = await engine.tackle.store.sequence(session.id)
  const view = createView()
  const leave = new AbortController()
  for await (const event of session.events({ after: 0, maxWaiting: 2, signal: leave.signal })) {
    expect(event.type).not.toBe("reset")
    view.apply(event)
    if (event.seq === present) leave.abort()
  }
  expect(view.messages).toEqual(await session.messages())
})

test("leaving the loop or closing the engine ends the stream", async () => {
  const engine = await talkative()
  const session = await engine.tackle.sessions.create()
  for await (const _ of session.events({ after: 0 })) break
  const next = session.events().next()
  await engine[Symbol.asyncDispose]()
  expect(await next).toEqual({ done: true, value: undefined })
})

test("a reader in one process sees the run of another", async () => {
  const project = await temporaryProject()
  const server = await startModelServer({ script: () => ({ text: "Done." }) })
  const options = {
    directory: project.directory,
    dataDirectory: project.path(".data"),
    model: "test/m",
    providers: { test: { options: { baseURL: server.url, apiKey: "k" }, models: { m: {} } } },
  }
  const [first, second] = [await createTackle(options), await createTackle(options)]
  const session = await first.sessions.create()
  const same = await second.sessions.get(session.id)
  if (!same) throw new Error("the second engine does not see the session")
  const view = createView()
  const leave = new AbortController()
  const reading = (async () => {
    for await (const event of same.events({ after: 0, signal: leave.signal })) view.apply(event)
  })()
  await session.send("from the first")
  await session.wait()
  await same.send("from the second")
  await same.wait()
  await session.wait()
  const stored = await session.messages()
  await expect.poll(() => view.messages, { timeout: 5000 }).toEqual(stored)
  expect(JSON.stringify(stored)).toMatch(/from the first[\s\S]*from the second/)
  leave.abort()
  await reading
  await first.close()
  await second.close()
  await server.close()
  await project.remove()
})

test("an event whose session was deleted meanwhile is sent, although the store has no earlier change", async () => {
  const bus = createBus((error) => {
    throw error
  })
  const parts = { streaming: () => [], announced: async () => {} }
  const events = streamSessionEvents({ store: createMemoryStore(), bus, parts }, "ses_1", { after: 0 })
  bus.publish({ type: "todo.updated", sessionID: "ses_1", todos: [], seq: 5 })
  expect((await events.next()).value).toMatchObject({ type: "todo.updated", seq: 5 })
  bus.publish({ type: "todo.updated", sessionID: "ses_1", todos: [], seq: 9 })
  expect((await events.next()).value).toMatchObject({ type: "todo.updated", seq: 9 })
  await events.return?.()
})

test("reads again if the store changes while it is being read", async () => {
  const memory = createMemoryStore()
  const { promise: reading, resolve: startReading } = Promise.withResolvers<void>()
  const { promise: go, resolve: finishReading } = Promise.withResolvers<void>()
  const listeners: (() => void)[] = []
  let reads = 0
  const store: Store = {
    ...memory,
    async changes(id, after) {
      const changes = await memory.changes(id, after)
      reads += 1
      // The first read has its result, but returns only after the next change.
      if (reads === 1) {
        startReading()
        await go
      }
      return changes
    },
    watch(listener) {
      listeners.push(listener)
      return () => {}
    },
  }
  await memory.commit([{ kind: "session", session: aSession("ses_1") }])
  const parts = { streaming: () => [], announced: async () => {} }
  const stream = streamSessionEvents({ store, bus: createBus(() => {}), parts }, "ses_1", { after: 0 })
  await reading
  await memory.commit([{ kind: "session", session: aSession("ses_1", { title: "changed elsewhere" }) }])
  for (const listener of listeners) listener()
  finishReading()
  const titles: string[] = []
  for await (const event of stream) {
    if (event.type === "session.updated") titles.push(event.session.title)
    if (titles.length === 2) break
  }
  expect(titles).toEqual(["ses_1", "changed elsewhere"])
})

test.each(["sequence", "changes"] as const)(
  "fails if the store cannot be read (%s), and continues later",
  async (method) => {
    const memory = createMemoryStore()
    let works = false
    const store: Store = {
      ...memory,
      async [method](...args: [string, number]): Promise<never> {
        if (!works) throw new StoreUnreachableError("no answer", undefined)
        return memory[method](...args) as never
      },
    }
    await memory.commit([{ kind: "session", session: aSession("ses_1") }])
    const parts = { streaming: () => [], announced: async () => {} }
    let ended = 0
    const onEnd = () => {
      ended += 1
    }
    const open = () =>
      streamSessionEvents({ store, bus: createBus(() => {}), parts, onEnd }, "ses_1", { after: 0 })
    const failing = open()
    await expect(failing.next()).rejects.toThrow("no answer")
    expect(await failing.next()).toEqual({ done: true, value: undefined })
    expect(ended).toBe(1)
    works = true
    const stream = open()
    expect((await stream.next()).value).toMatchObject({ type: "session.updated", seq: 1 })
    await stream.return?.()
  },
)

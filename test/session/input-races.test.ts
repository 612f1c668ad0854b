import { setImmediate as nextTurn, setTimeout as pause } from "node:timers/promises"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import type { Input } from "../../src/schema/input.ts"
import type { SessionHandle } from "../../src/session/handle.ts"
import { createMemoryStore } from "../../src/store/memory.ts"
import { type Change, type Store, StoreError } from "../../src/store/store.ts"
import type { ModelRequestBody, Script } from "../../src/testing/model-server.ts"
import { orAbort } from "../../src/util/abort.ts"
import { startEngine } from "./engine.ts"
import { tool } from "./run.ts"

/** The text of the last message. */
function lastText({ messages }: ModelRequestBody): string {
  const { content } = messages.at(-1) ?? {}
  return typeof content === "string" ? content : JSON.stringify(content)
}

/** The model repeats the last text. */
const echo = ({ body }: { body: ModelRequestBody }) => ({ text: `heard ${lastText(body)}` })

/** Returns the texts of the messages with a role. */
async function textsOf(session: SessionHandle, role: "user" | "assistant"): Promise<string[]> {
  return (await session.messages()).flatMap(({ message, parts }) =>
    message.role === role ? parts.flatMap((part) => (part.type === "text" ? [part.text] : [])) : [],
  )
}

/** Selects the operations of a store at which it stops. */
interface Stops {
  /** Stops before a change is committed. */
  commit?(change: Change): boolean
  /** Stops after an input is stored. */
  stored?(input: Input): boolean
  /** Stops before a session is leased. */
  lease?: true
}

/** A store that stops at an operation, and whose watchers can be called as after a change by another process. */
function stoppingStore(stops: Stops) {
  const store = createMemoryStore()
  const listeners = new Set<() => void>()
  const reached = Promise.withResolvers<void>()
  const go = Promise.withResolvers<void>()
  const stop = () => {
    reached.resolve()
    return go.promise
  }
  const stopping: Store = {
    ...store,
    async commit(changes, options) {
      if (changes.some((change) => stops.commit?.(change))) await stop()
      return store.commit(changes, options)
    },
    async updateInputs(...given) {
      const stored = await store.updateInputs(...given)
      if (stored.some(({ input }) => stops.stored?.(input))) await stop()
      return stored
    },
    async lease(...given) {
      if (stops.lease) await stop()
      return store.lease(...given)
    },
    watch(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
  const changeElsewhere = () => {
    for (const listener of listeners) listener()
  }
  return { store: stopping, reached: reached.promise, go: () => go.resolve(), changeElsewhere, listeners }
}

test("an urgent input that is sent while a run starts is not interrupted with that run", async () => {
  const { store, reached, go } = stoppingStore({ lease: true })
  await using engine = await startEngine(echo, { store })
  const session = await engine.tackle.sessions.create()
  const ends: string[] = []
  engine.tackle.on("run.completed", ({ status, text }) => ends.push(`${status}: ${text}`))
  await session.send("first")
  await reached
  await session.send("urgent", { delivery: "now" })
  go()
  await session.wait()
  expect(ends).toEqual(["completed: heard first"])
  expect(await textsOf(session, "user")).toEqual(["urgent", "first"])
})

test("a change by another process does not interrupt the run that delivers an urgent input", async () => {
  const { store, reached, go, changeElsewhere, listeners } = stoppingStore({
    commit: (change) => change.kind === "input" && change.input.state === "promoted",
  })
  await using engine = await startEngine(echo, { store })
  const session = await engine.tackle.sessions.create()
  await session.send("urgent", { delivery: "now" })
  await reached
  changeElsewhere()
  await nextTurn()
  go()
  expect(await session.wait()).toMatchObject({ status: "completed", text: "heard urgent" })
  expect(listeners.size).toBe(0)
})

test("an input that is being delivered cannot be changed", async () => {
  const { store, reached, go } = stoppingStore({ stored: ({ claimedBy }) => claimedBy !== undefined })
  await using engine = await startEngine(echo, { store })
  const session = await engine.tackle.sessions.create()
  const { id } = await session.send("hello")
  await reached
  await expect(session.inputs.edit(id, { text: "x" })).rejects.toThrow("it is being delivered to the model")
  go()
  await session.wait()
  await expect(session.inputs.edit(id, { text: "x" })).rejects.toThrow("it was delivered to the model")
})

describe("an interrupt during the delivery", () => {
  test("leaves an input that is not stored as a message in the queue", async () => {
    const { store, reached, go } = stoppingStore({ stored: ({ claimedBy }) => claimedBy !== undefined })
    await using engine = await startEngine(echo, { store })
    const session = await engine.tackle.sessions.create()
    await session.send("hello")
    await reached
    const interrupted = session.interrupt()
    await nextTurn()
    go()
    await interrupted
    expect(await session.inputs.list()).toMatchObject([{ text: "hello", paused: true }])
    expect(await session.inputs.list()).not.toMatchObject([{ claimedBy: expect.anything() }])
    expect(await session.messages()).toEqual([])
    await session.inputs.resume()
    expect(await session.wait()).toMatchObject({ text: "heard hello" })
  })

  test("does not stop an input that is sent before the interrupt has ended", async () => {
    const { store, reached, go } = stoppingStore({ stored: ({ paused }) => paused === true })
    const started = Promise.withResolvers<void>()
    const wait = tool("wait", (_, { abort }) => {
      started.resolve()
      return orAbort(new Promise(() => {}), abort)
    })
    const script: Script = (request) =>
      lastText(request.body) === "work" ? { calls: [{ name: "wait", arguments: {} }] } : echo(request)
    await using engine = await startEngine(script, { store, tools: [wait], permission: { "*": "allow" } })
    const session = await engine.tackle.sessions.create()
    await session.send("work")
    await started.promise
    await session.send("later", { delivery: "queue" })
    const interrupted = session.interrupt()
    await reached
    await session.send("correction")
    go()
    await interrupted
    await session.wait()
    expect(await session.inputs.list()).toEqual([])
    expect(await textsOf(session, "assistant")).toEqual(["heard correction", "heard later"])
  })
})

test("an interrupt stops the run even if the queue cannot be paused", async () => {
  const store = createMemoryStore()
  let isBroken = false
  const started = Promise.withResolvers<void>()
  const wait = tool("wait", (_, { abort }) => {
    started.resolve()
    return orAbort(new Promise(() => {}), abort)
  })
  await using engine = await startEngine([{ calls: [{ name: "wait", arguments: {} }] }], {
    tools: [wait],
    permission: { "*": "allow" },
    store: {
      ...store,
      async updateInputs(...given) {
        if (isBroken) throw new StoreError("The disk is full.")
        return store.updateInputs(...given)
      },
    },
  })
  const session = await engine.tackle.sessions.create()
  const run = session.prompt("work")
  await started.promise
  isBroken = true
  await expect(session.interrupt()).rejects.toThrow("The disk is full.")
  expect(await run.completed).toMatchObject({ status: "interrupted" })
})

test("each input is delivered once, in any order of sends, urgent inputs and interrupts", async () => {
  const step = fc.record({
    act: fc.constantFrom("steer", "queue", "now", "interrupt", "clear", "edit"),
    turns: fc.nat({ max: 12 }),
    later: fc.boolean(),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 14 }), async (steps) => {
      const work = tool("work", async (_, { abort }) => {
        await orAbort(pause(2), abort)
        return { title: "", output: "worked" }
      })
      await using engine = await startEngine(
        ({ body }) =>
          body.messages.at(-1)?.role === "user" && lastText(body).includes("3")
            ? { calls: [{ name: "work", arguments: {} }] }
            : { text: "heard" },
        { tools: [work], permission: { "*": "allow" } },
      )
      const session = await engine.tackle.sessions.create()
      const sent: string[] = []
      const cleared: string[] = []
      const acts: Promise<unknown>[] = []
      for (const [index, { act, turns, later }] of steps.entries()) {
        if (act === "interrupt") acts.push(session.interrupt())
        else if (act === "clear")
          acts.push(
            session.interrupt({ clear: true }).then((inputs) => {
              for (const { id } of inputs) cleared.push(id)
            }),
          )
        else if (act === "edit") {
          const [first] = await session.inputs.list()
          if (first) acts.push(session.inputs.edit(first.id, { position: 5 }).catch(() => {}))
        } else {
          sent.push(`i${index}`)
          acts.push(session.send(`i${index}`, { id: `i${index}`, delivery: act }))
        }
        for (let turn = 0; turn < turns; turn += 1) await (later ? nextTurn() : Promise.resolve())
      }
      await Promise.all(acts)
      await session.inputs.resume()
      await session.wait()
      expect(await session.inputs.list()).toEqual([])
      expect([...(await textsOf(session, "user")), ...cleared].sort()).toEqual(sent.sort())
      expect(await engine.tackle.sessions.status(session.id)).toBe("idle")
    }),
    { numRuns: 40 },
  )
}, 120_000)

describe("an edit", () => {
  /** A session with one held input. */
  async function held() {
    const engine = await startEngine(echo)
    const session = await engine.tackle.sessions.create()
    const store = engine.tackle.store
    const command = { name: "say", template: "say it", arguments: "" }
    await store.updateInputs(session.id, undefined, () => [
      {
        ...{ id: "a", sessionID: session.id, seq: 0, position: 1, text: "/say", command, digest: "" },
        ...{ delivery: "queue", state: "pending", held: true, time: { created: 1 } },
      },
    ])
    return { engine, session }
  }

  test("of the text keeps the input held", async () => {
    const { engine, session } = await held()
    await using _ = engine
    expect(await session.inputs.edit("a", { text: "half a sen" })).toMatchObject({ held: true })
    expect(await session.inputs.edit("a", { position: 0 })).toMatchObject({ held: true })
    expect(await session.inputs.edit("a", { held: false })).not.toHaveProperty("held")
    expect(await session.wait()).toMatchObject({ text: "heard half a sen" })
  })

  test("of the text replaces the command", async () => {
    const { engine, session } = await held()
    await using _ = engine
    expect(await session.inputs.edit("a", { position: 0 })).toHaveProperty("command")
    const command = { name: "other", template: "t", arguments: "" }
    expect(await session.inputs.edit("a", { text: "/other", command })).toMatchObject({ command })
    expect((await session.inputs.edit("a", { text: "hello" })).command).toBeUndefined()
  })

  test("refuses an input without text and files, and accepts files without text", async () => {
    const { engine, session } = await held()
    await using _ = engine
    await expect(session.inputs.edit("a", { text: " " })).rejects.toThrow(/empty/)
    const files = [{ mime: "text/plain", url: "data:text/plain,x" }]
    await session.inputs.edit("a", { text: "", files })
    expect(await session.inputs.edit("a", { text: "" })).toMatchObject({ text: "", files })
    await expect(session.inputs.edit("a", { files: [] })).rejects.toThrow(/empty/)
  })
})

import { expect, test } from "vitest"
import type { TackleEvent } from "../../src/event/events.ts"
import type { Message } from "../../src/schema/message.ts"
import { type Part, Part as PartSchema } from "../../src/schema/part.ts"
import { createMemoryStore } from "../../src/store/memory.ts"
import { openSqliteStore } from "../../src/store/sqlite.ts"
import type { Store } from "../../src/store/store.ts"
import { temporaryProject } from "../../src/testing/project.ts"
import { startEngine } from "./engine.ts"
import { playback, words } from "./model.ts"
import { run, tool, toolParts } from "./run.ts"

/** Everything that a run can announce: text, reasoning, good and bad calls, progress, a retry. */
const busy = [
  { text: "half", fault: "cut" as const },
  {
    text: "Looking around.",
    reasoning: "Where to begin?",
    calls: [
      { name: "read", arguments: { filePath: "a.txt" } },
      { name: "report", arguments: {} },
      { name: "bash", arguments: { command: "echo hello" } },
      { name: "edit", arguments: { filePath: "a.txt", oldString: "one", newString: "two" } },
      { name: "todowrite", arguments: { todos: [{ content: "c", status: "pending" }] } },
      { name: "nosuch", arguments: {} },
      { name: "report", arguments: "{broken" },
    ],
    pieceSize: 5,
  },
  { text: "Done.", pieceSize: 2 },
]

type Stored = Message | Part

const report = tool("report", async (_, ctx) => {
  for (let n = 0; n < 3; n += 1) {
    await ctx.metadata({ title: `step ${n}`, progress: n })
    await new Promise((resolve) => setTimeout(resolve, 110))
  }
  return { title: "report", output: "reported" }
})

const busyOptions = { tools: [report], permission: { "*": "allow" as const }, files: { "a.txt": "one\n" } }

const stores: [string, (path: string) => Promise<Store>][] = [
  ["memory", async () => createMemoryStore()],
  ["sqlite", (path) => openSqliteStore(path)],
]

test.each(stores)("stores everything in the %s store before it is announced", async (_, open) => {
  const directory = await temporaryProject()
  const store = await open(directory.path("tackle.db"))
  await using engine = await startEngine(busy, { ...busyOptions, store })
  const announced: Stored[] = []
  const stored: Promise<Stored | undefined>[] = []
  engine.tackle.subscribe((event) => {
    if (event.type !== "part.updated" && event.type !== "message.updated" && event.type !== "message.created")
      return
    const { id } = event.type === "part.updated" ? event.part : event.message
    announced.push(structuredClone(event.type === "part.updated" ? event.part : event.message))
    // Read immediately: both stores read at the time of the call.
    stored.push(
      store.messages(event.sessionID).then((messages) => {
        const present = messages.flatMap((entry): Stored[] => [entry.message, ...entry.parts])
        return structuredClone(present.find((each) => each.id === id))
      }),
    )
  })
  expect((await run(engine)).end).toMatchObject({ exitCode: 0, text: "Done." })
  expect(announced.length).toBeGreaterThan(25)
  for (const [index, found] of (await Promise.all(stored)).entries()) {
    // Two states that arrive together are stored together, so the later one may be stored already.
    const sinceThen = announced.slice(index).filter(({ id }) => id === announced[index]?.id)
    expect(sinceThen).toContainEqual(found)
  }
  await store.close()
  await directory.remove()
})

test("creates valid parts with ascending ids in the order of events", async () => {
  await using engine = await startEngine(busy, busyOptions)
  const { events } = await run(engine)
  const ids: string[] = []
  for (const event of events) {
    if (event.type !== "part.updated") continue
    expect(PartSchema.parse(event.part)).toEqual(event.part)
    if (!ids.includes(event.part.id)) ids.push(event.part.id)
  }
  expect(ids.every((id) => id.startsWith("prt_"))).toBe(true)
  expect(ids).toEqual([...ids].sort())
  const times = events.map(({ time }) => time)
  expect(times).toEqual([...times].sort((a, b) => a - b))
})

test("lets a listener rebuild the stored session from parts and deltas", async () => {
  await using engine = await startEngine(busy, busyOptions)
  const { session, events } = await run(engine)
  const mirror = follow(events)
  const stored = (await session.messages()).flatMap(({ parts }) => parts)
  // The record of file changes is a part of the first message and arrives between others.
  const byMessage = (a: Part, b: Part) => (`${a.messageID} ${a.id}` < `${b.messageID} ${b.id}` ? -1 : 1)
  expect([...mirror.values()].toSorted(byMessage)).toEqual(stored)
})

/** A client's view: parts by id, with deltas added to the announced objects. */
function follow(events: readonly TackleEvent[]): Map<string, Part> {
  const parts = new Map<string, Part>()
  for (const event of events) {
    if (event.type === "part.updated" && event.part.messageID !== "") parts.set(event.part.id, event.part)
    if (event.type === "part.removed") parts.delete(event.partID)
    if (event.type !== "part.delta") continue
    const part = parts.get(event.partID)
    if (!part) throw new Error(`a delta of the unknown part ${event.partID}`)
    if (part.type === "text" || part.type === "reasoning") part.text += event.delta
    else if (part.type === "tool" && part.state.status === "pending") part.state.raw += event.delta
  }
  return parts
}

test("never changes an announced part: arguments arrive as deltas", async () => {
  await using engine = await startEngine(
    [{ calls: [{ name: "read", arguments: { filePath: "a.txt" } }], pieceSize: 1 }, { text: "Done." }],
    busyOptions,
  )
  const { events } = await run(engine)
  const first = events.find((event) => event.type === "part.updated" && event.part.type === "tool")
  expect(first).toMatchObject({ part: { state: { status: "pending", raw: "", input: {} } } })
  const message = events.find(
    (event) => event.type === "message.created" && event.message.role === "assistant",
  )
  expect(message).not.toHaveProperty("message.finish")
})

test("joins rapid deltas", async () => {
  const text = "word ".repeat(400)
  await using engine = await startEngine([{ text, pieceSize: 1 }])
  const { events } = await run(engine)
  const deltas = events.flatMap((event) => (event.type === "part.delta" ? [event.delta] : []))
  expect(deltas.join("")).toBe(text)
  expect(deltas.length).toBeLessThan(text.length / 4)
})

test("joins progress, and keeps its last state in the result", async () => {
  const eager = tool("eager", async (_, ctx) => {
    for (let n = 1; n <= 500; n += 1) {
      await ctx.metadata({ title: `${n}`, metadata: { n, [`k${n % 2}`]: true } })
      if (n % 100 === 0) await new Promise((resolve) => setTimeout(resolve, 20))
    }
    return { title: "eager", output: "ok", metadata: { own: 1 } }
  })
  await using engine = await startEngine([{ calls: [{ name: "eager", arguments: {} }] }, { text: "Done." }], {
    tools: [eager],
    permission: { "*": "allow" },
  })
  const { session, events } = await run(engine)
  const running = events.filter(
    (event) =>
      event.type === "part.updated" && event.part.type === "tool" && event.part.state.status === "running",
  )
  expect(running.length).toBeGreaterThanOrEqual(2)
  expect(running.length).toBeLessThan(20)
  expect((await toolParts(session))[0]?.state).toMatchObject({
    status: "completed",
    title: "eager",
    metadata: { n: 500, k0: true, k1: true, own: 1 },
  })
})

test("creates a part for a call that arrives at once, and for two calls with one id", async () => {
  const model = playback([
    [
      { type: "tool-call", toolCallId: "same", toolName: "read", input: '{"filePath":"a.txt"}' },
      { type: "tool-call", toolCallId: "same", toolName: "read", input: '{"filePath":"b.txt"}' },
      { type: "tool-input-start", id: "same", toolName: "read" },
      { type: "tool-input-delta", id: "same", delta: '{"filePath":' },
      { type: "tool-input-delta", id: "same", delta: '"c.txt"}' },
      { type: "tool-input-end", id: "same" },
      { type: "tool-call", toolCallId: "same", toolName: "read", input: '{"filePath":"c.txt"}' },
    ],
    words("Done."),
  ])
  await using engine = await startEngine([], {
    model,
    files: { "a.txt": "A\n", "b.txt": "B\n", "c.txt": "C\n" },
  })
  const { session, events, end } = await run(engine)
  expect(end).toMatchObject({ status: "completed", text: "Done." })
  const parts = await toolParts(session)
  expect(parts.map(({ callID, state }) => [callID, state.status, state.input.filePath])).toEqual([
    ["same", "completed", "a.txt"],
    ["same_2", "completed", "b.txt"],
    ["same_3", "completed", "c.txt"],
  ])
  for (const { id } of parts) {
    const seen = events.flatMap((event) =>
      event.type === "part.updated" && event.part.id === id && event.part.type === "tool"
        ? [event.part.state.status]
        : [],
    )
    expect(seen).toEqual(["pending", "running", "completed"])
  }
})

test("keeps what a stream sent of a call that it never finished", async () => {
  const model = playback([
    [
      { type: "tool-input-start", id: "x", toolName: "read" },
      { type: "tool-input-delta", id: "x", delta: '{"filePath":"a.t' },
    ],
    words("Done."),
  ])
  await using engine = await startEngine([], { model })
  const { session, end } = await run(engine)
  expect(end.status).toBe("completed")
  expect((await toolParts(session))[0]?.state).toMatchObject({
    status: "error",
    metadata: { kind: "malformed" },
  })
})

test("keeps the ids of attachments", async () => {
  const file = {
    id: "prt_1",
    sessionID: "ses_1",
    messageID: "msg_1",
    type: "file",
    mime: "text/plain",
    url: "/a",
  }
  const attach = tool("attach", async () => ({ title: "", output: "", attachments: [file] }))
  await using engine = await startEngine(
    [{ calls: [{ name: "attach", arguments: {} }] }, { text: "Done." }],
    {
      tools: [attach],
      permission: "allow",
    },
  )
  const { session } = await run(engine)
  expect((await toolParts(session))[0]?.state).toMatchObject({ attachments: [file] })
})

import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { expect, onTestFinished, test } from "vitest"
import type { MessageWithParts } from "../../src/schema/message.ts"
import type { Part } from "../../src/schema/part.ts"
import { archiveText } from "../../src/session/transfer-session.ts"
import { createMemoryStore } from "../../src/store/memory.ts"
import { openSqliteStore } from "../../src/store/sqlite.ts"
import type { Change, MessagePage, Store } from "../../src/store/store.ts"
import type { RecordedRequest } from "../../src/testing/model-server.ts"
import { aMessage, aPart, aSession } from "../suites/records.ts"
import { startEngine } from "./engine.ts"
import { run, tool } from "./run.ts"

const id = "ses_long"
const messageCount = 2_500
const partsEach = 4
const text = "A line of the long session. ".repeat(20)

/** Ten thousand parts, oldest first. */
function longSession(more: readonly Part[] = []): Change[] {
  const changes: Change[] = []
  for (let index = 0; index < messageCount; index += 1) {
    const messageID = messageAt(index)
    changes.push({ kind: "message", message: aMessage(messageID, id) })
    for (let place = 0; place < partsEach; place += 1) {
      const part = aPart(`prt_${messageID}_${place}`, messageID, id, `${index}.${place} ${text}`)
      changes.push({ kind: "part", part })
    }
  }
  return [...changes, ...more.map((part): Change => ({ kind: "part", part }))]
}

function messageAt(index: number): string {
  return `msg_0000000${String(index).padStart(4, "0")}`
}

/** Makes the message a summary of everything except the two messages that `from` keeps. */
const summary: Part = {
  id: "prt_summary",
  sessionID: id,
  messageID: messageAt(messageCount - 1),
  type: "compaction",
  auto: true,
  from: messageAt(messageCount - 3),
}

/** Counts reads and writes of a store. */
interface Traffic {
  pages: MessagePage[]
  longest: number
  read: number
  written: number
}

function counted(store: Store): { store: Store; traffic: Traffic } {
  const traffic: Traffic = { pages: [], longest: 0, read: 0, written: 0 }
  async function messages(sessionID: string, page: MessagePage = {}): Promise<MessageWithParts[]> {
    const found = await store.messages(sessionID, page)
    traffic.pages.push(page)
    traffic.read += found.length
    traffic.longest = Math.max(traffic.longest, found.length)
    return found
  }
  function commit(changes: readonly Change[]): Promise<number[]> {
    traffic.written += JSON.stringify(changes).length
    return store.commit(changes)
  }
  return { store: { ...store, messages, commit }, traffic }
}

const note = tool("note", () => ({ title: "", output: "noted" }))

/** An engine with a long session; each prompt makes one call. */
async function openLong(changes: readonly Change[], opened: Store) {
  const { store, traffic } = counted(opened)
  const engine = await startEngine(
    ({ body }) =>
      body.messages.at(-1)?.role === "tool" ? { text: "done" } : { calls: [{ name: "note", arguments: {} }] },
    { tools: [note], permission: { "*": "allow" }, sandbox: "off", store },
  )
  const { directory } = engine.project
  const session = aSession(id, { worktree: directory, directory })
  await opened.commit([{ kind: "session", session }, ...changes])
  return { engine, traffic }
}

const stores = {
  memory: async () => createMemoryStore(),
  sqlite: async () => openSqliteStore(join(await temporaryDirectory(), "tackle.db")),
}

test.each(Object.entries(stores))("%s: 10,000 parts open and continue by pages", async (_, openStore) => {
  const store = await openStore()
  const { engine, traffic } = await openLong(longSession(), store)
  await using _engine = engine
  const session = await engine.tackle.sessions.get(id)
  const { end } = await run(engine, { text: "continue", session: session ?? expect.fail() })
  expect(end).toMatchObject({ status: "completed", text: "done" })
  expect(traffic).toMatchObject({ longest: 100, read: messageCount })
  const sent = fromUser(engine.server.requests[0])
  expect(JSON.stringify(sent[0])).toContain("0.0 A line")
  expect(sent).toHaveLength(messageCount + 1)
  await store.close()
})

test("reads and writes no more per turn in a long session than in a short one", async () => {
  const written: number[] = []
  for (const changes of [[], longSession()]) {
    const store = createMemoryStore()
    const { engine, traffic } = await openLong(changes, store)
    await using _engine = engine
    const session = (await engine.tackle.sessions.get(id)) ?? expect.fail()
    await run(engine, { session })
    const before = { ...traffic }
    await run(engine, { session })
    expect(traffic.read).toBe(before.read)
    written.push(traffic.written - before.written)
  }
  const [short = 0, long = 0] = written
  // Not exact: times and counts have varying numbers of digits.
  expect(Math.abs(long - short)).toBeLessThan(100)
})

test("opens a session from a summary that lists its files", async () => {
  for (const openStore of Object.values(stores)) {
    const store = await openStore()
    const { engine, traffic } = await openLong(longSession([{ ...summary, seen: [] }]), store)
    await using _engine = engine
    const session = (await engine.tackle.sessions.get(id)) ?? expect.fail()
    await run(engine, { session })
    expect(traffic.read).toBe(100)
    expect(fromUser(engine.server.requests[0])).toHaveLength(4)
    await store.close()
  }
})

test("holds only the compacted history in memory", async () => {
  const store = await stores.sqlite()
  const { engine, traffic } = await openLong(longSession([summary]), store)
  await using _engine = engine
  const session = (await engine.tackle.sessions.get(id)) ?? expect.fail()
  // The first prompt of an engine creates things that do not belong to the session.
  await run(engine)
  const before = heapBytes()
  await run(engine, { session })
  expect(traffic.read).toBe(messageCount)
  // The summary, the two messages that it keeps, and the prompt.
  expect(fromUser(engine.server.requests.at(-1))).toHaveLength(4)
  const stored = messageCount * partsEach * text.length
  expect(heapBytes() - before).toBeLessThan(stored / 5)
  await store.close()
})

test("releases summarized messages during a run, and undo still finds the turn before", async () => {
  const size = (request: RecordedRequest) => JSON.stringify(request.body.messages).length
  await using engine = await startEngine(
    (request) => {
      const { messages } = request.body
      if (String(messages[0]?.content).startsWith("Summarize the work")) return { text: "SUMMARY" }
      if (size(request) > 30_000) return { status: 400, text: "maximum context length is 100 tokens" }
      const asked = messages.at(-1)
      if (asked?.role !== "user" || !JSON.stringify(asked).includes("write it"))
        return { text: "x ".repeat(4_000) }
      return { calls: [{ name: "write", arguments: { filePath: "made.txt", content: "made" } }] }
    },
    { permission: { "*": "allow" }, sandbox: "off" },
  )
  const { session } = await run(engine, { text: "write it" })
  for (let turn = 0; turn < 4; turn += 1) await run(engine, { session, text: "say more" })
  const parts = (await session.messages()).flatMap((entry) => entry.parts)
  expect(parts.some(({ type }) => type === "compaction")).toBe(true)
  const undone = await session.undo()
  expect(undone).toMatchObject({ prompt: "write it", files: [{ kind: "removed" }] })
  await run(engine, { session, text: "what now?" })
  const told = JSON.stringify(engine.server.requests.at(-1)?.body.messages)
  expect(told).toContain("undid your changes to these files")
  expect(told).toContain("made.txt")
})

test("writes an archive in small pieces that make up the whole", async () => {
  const { engine, traffic } = await openLong(longSession(), createMemoryStore())
  await using _engine = engine
  const { store, sessions } = engine.tackle
  await store.commit([
    { kind: "session", session: aSession("ses_child", { parentID: id }) },
    { kind: "session", session: aSession("ses_grandchild", { parentID: "ses_child" }) },
    { kind: "message", message: aMessage("msg_child", "ses_child") },
    { kind: "todos", sessionID: id, todos: [{ content: "first", status: "pending", priority: "high" }] },
  ])
  for (const sanitize of [false, true]) {
    const pieces: string[] = []
    for await (const piece of (await archiveText(store, id, { sanitize })) ?? []) pieces.push(piece)
    expect(JSON.parse(pieces.join(""))).toEqual(await sessions.export(id, { sanitize }))
    expect(Math.max(...pieces.map(({ length }) => length))).toBeLessThan(10_000)
  }
  expect(traffic.pages.some(({ limit }) => limit === 100)).toBe(true)
  expect(await archiveText(store, "ses_none")).toBeUndefined()
})

function fromUser(request: RecordedRequest | undefined) {
  return (request?.body.messages ?? []).filter(({ role }) => role === "user")
}

/** Heap in use after a collection, including long strings outside of the heap. */
function heapBytes(): number {
  setFlagsFromString("--expose-gc")
  const collect: () => void = runInNewContext("gc")
  collect()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

async function temporaryDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "tackle-long-"))
  onTestFinished(() => rm(directory, { recursive: true, force: true }))
  return directory
}

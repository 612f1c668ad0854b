import { rmSync } from "node:fs"
import { expect, test } from "vitest"
import { createMemoryStore } from "../../src/store/memory.ts"
import { type Change, type Store, StoreError, StoreRemovedError } from "../../src/store/store.ts"
import { startEngine } from "./engine.ts"
import { run, tool, toolParts } from "./run.ts"

/**
 * A memory store that refuses a transaction if `fails` returns true for one of its changes. Transactions count from 0.
 */
function failingStore(fails: (number: number, change: Change) => boolean): Store & { written: number } {
  const store = createMemoryStore()
  const numbers = new Map<Change, number>()
  return {
    ...store,
    get written() {
      return numbers.size
    },
    async commit(changes: readonly Change[]) {
      for (const change of changes) numbers.set(change, numbers.size)
      if (changes.some((change) => fails(numbers.get(change) ?? 0, change)))
        throw new StoreError("The disk is full.")
      return store.commit(changes)
    },
  }
}

let running = 0
const slow = tool("slow", async () => {
  running += 1
  await new Promise((resolve) => setTimeout(resolve, 20))
  running -= 1
  return { title: "slow", output: "slow" }
})

const script = (request: { body: { messages: { role: string; content?: unknown }[] } }) => {
  const last = request.body.messages.at(-1)
  if (JSON.stringify(last?.content ?? "").includes("again")) return { text: "Again." }
  return last?.role === "tool"
    ? { text: "Done." }
    : {
        text: "So:",
        calls: [
          { name: "slow", arguments: { n: 1 } },
          { name: "read", arguments: { filePath: "a.txt" } },
          { name: "slow", arguments: { n: 2 } },
        ],
      }
}

test("ends the run with the reason when the store refuses any write, and the next prompt works", async () => {
  let failing = 1
  for (; ; failing += 1) {
    const store = failingStore((number) => number === failing)
    const faults: string[] = []
    await using engine = await startEngine(script, {
      store,
      tools: [slow],
      permission: { "*": "allow" },
      files: { "a.txt": "x\n" },
      onProblem: (message, error) => faults.push(`${message} ${String(error)}`),
    })
    const { session, events, end } = await run(engine)
    if (store.written <= failing) break
    // The next state replaces a lost progress report. Any other refusal stops the run.
    if (end.status !== "completed") {
      expect(end).toMatchObject({ status: "failed", exitCode: 1 })
      expect(events.find(({ type }) => type === "session.error")).toMatchObject({
        error: { message: "The disk is full." },
      })
    }
    expect(running).toBe(0)
    expect(faults).toEqual([])

    const next = await run(engine, { session, text: "again" })
    expect(next.end).toMatchObject({ status: "completed", text: "Again." })
    for (const { state } of await toolParts(session)) expect(state.status).toMatch(/^(completed|error)$/)
    for (const { message } of await session.messages())
      if (message.role === "assistant") expect(message.time.completed).toBeDefined()
  }
  expect(failing).toBeGreaterThan(10)
})

test("stores the result of a call whose progress could not be stored, without a warning", async () => {
  const faults: string[] = []
  const refused = Promise.withResolvers<void>()
  const progressing = tool("progressing", async (_, ctx) => {
    await ctx.metadata({ title: "half" })
    await refused.promise
    return { title: "whole", output: "whole" }
  })
  const store = failingStore((_, change) => {
    if (change.kind !== "part" || change.part.type !== "tool") return false
    const { state } = change.part
    const fails = state.status === "running" && state.title === "half"
    if (fails) refused.resolve()
    return fails
  })
  await using engine = await startEngine(
    [{ calls: [{ name: "progressing", arguments: {} }] }, { text: "Done." }],
    {
      store,
      tools: [progressing],
      permission: { "*": "allow" },
      onProblem: (message, error) => faults.push(`${message} ${String(error)}`),
    },
  )
  const { session, end } = await run(engine)
  expect(end).toMatchObject({ status: "completed", text: "Done." })
  expect(await toolParts(session)).toMatchObject([{ state: { status: "completed", output: "whole" } }])
  expect(faults).toEqual([])
})

test("names the error when the data directory is removed", async () => {
  const faults: string[] = []
  const remove = tool("remove", async () => {
    rmSync(engine.tackle.dataDirectory, { recursive: true })
    return { title: "", output: "" }
  })
  await using engine = await startEngine([{ calls: [{ name: "remove", arguments: {} }] }], {
    store: undefined,
    tools: [remove],
    permission: { "*": "allow" },
    onProblem: (message, error) => faults.push(`${message} ${String(error)}`),
  })
  const { session, events, end } = await run(engine)
  expect(end).toMatchObject({ status: "failed", exitCode: 1 })
  expect(events.filter(({ type }) => type === "session.error")).toMatchObject([
    { error: { name: "store.removed", message: expect.stringContaining(engine.tackle.dataDirectory) } },
  ])
  await expect(engine.tackle.sessions.create()).rejects.toThrow(StoreRemovedError)
  await expect(session.undo()).rejects.toMatchObject({ name: "StoreRemovedError", code: "store.removed" })
  expect((await run(engine, { session })).end).toMatchObject({ status: "failed", exitCode: 1 })
  expect(faults).toEqual([])
})

test("does not start a tool whose intent could not be stored", async () => {
  let runs = 0
  const touch = tool("touch", async () => ({ title: "", output: String(++runs) }))
  const store = failingStore(
    (_, change) =>
      change.kind === "part" && change.part.type === "tool" && change.part.state.status === "running",
  )
  await using engine = await startEngine([{ calls: [{ name: "touch", arguments: {} }] }, { text: "Done." }], {
    store,
    tools: [touch],
    permission: { "*": "allow" },
  })
  await run(engine)
  expect(runs).toBe(0)
})

test("ends the run when an answer could not be stored before a question about its call", async () => {
  let runs = 0
  let refused = 0
  const touch = tool("touch", async () => ({ title: "", output: String(++runs) }))
  const store = failingStore((_, change) => {
    if (change.kind !== "part" || change.part.type !== "step-finish") return false
    refused += 1
    return refused === 1
  })
  // In pieces, so that the start is stored before the end arrives.
  const answer = { text: "I do.", calls: [{ name: "touch", arguments: {} }], pieceSize: 1, pieceDelayMs: 5 }
  await using engine = await startEngine([answer, { text: "Done." }], { store, tools: [touch] })
  engine.tackle.on("permission.asked", (request) => void request.reply("once"))
  const { end } = await run(engine)
  expect(end).toMatchObject({ status: "failed", exitCode: 1 })
  expect(runs).toBe(0)
})

test("an undo that could not be stored can be repeated, and then redone", async () => {
  let isFull = false
  const store = failingStore((_, change) => isFull && change.kind === "session")
  await using engine = await startEngine(
    [{ calls: [{ name: "write", arguments: { filePath: "a.txt", content: "a" } }] }, { text: "Done." }],
    { store, permission: { "*": "allow" } },
  )
  const { session } = await run(engine)
  isFull = true
  await expect(session.undo()).rejects.toThrow("The disk is full.")
  isFull = false
  await session.undo()
  await session.redo()
  expect(await engine.project.read("a.txt")).toBe("a")
})

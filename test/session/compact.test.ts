import { readFile } from "node:fs/promises"
import { expect, test } from "vitest"
import { CompactionError } from "../../src/session/compact.ts"
import type { ChatMessage, RecordedRequest } from "../../src/testing/model-server.ts"
import type { Reply } from "../../src/testing/reply.ts"
import { startEngine } from "./engine.ts"
import { run, toolParts } from "./run.ts"

const allowed = { permission: { "*": "allow" }, sandbox: "off" } as const
const tooLong: Reply = { status: 400, text: "This model's maximum context length is 100 tokens." }
const read: Reply = { calls: [{ name: "read", arguments: { filePath: "long.txt" } }] }
const long = `${"line of text\n".repeat(400)}`

const isSummary = ({ body }: RecordedRequest) => textOf(body.messages[0]).startsWith("Summarize the work")

function textOf(message: ChatMessage | undefined): string {
  const { content } = message ?? {}
  if (typeof content === "string") return content
  return (content ?? []).map(({ text = "" }) => text).join("\n")
}

/** Answers in order, refuses requests that are longer than the model allows, and summarizes with `summary`. */
function narrow(maxCharacters: number, replies: Reply[], summary: Reply = { text: "SUMMARY" }) {
  let next = 0
  return (request: RecordedRequest): Reply => {
    if (isSummary(request)) return summary
    const size = JSON.stringify(request.body.messages).length
    return size > maxCharacters ? tooLong : (replies[next++] ?? { text: "done" })
  }
}

/** Every call of a request has its result, and every result its call. */
function pairs({ body }: RecordedRequest) {
  const calls = body.messages.flatMap((message) => (message.tool_calls ?? []).map(({ id }) => id))
  const results = body.messages.flatMap(({ tool_call_id: id }) => (id === undefined ? [] : [id]))
  return { calls, results }
}

test("prunes old outputs first when the history is too long, and continues", async () => {
  const files = { "long.txt": long }
  const script = narrow(16_000, [read, read, read, read, { text: "all read" }])
  await using engine = await startEngine(script, { ...allowed, files })
  const { session, end } = await run(engine, { text: "read it four times" })
  expect(end).toMatchObject({ status: "completed", text: "all read" })
  const pruned = (await toolParts(session)).flatMap(({ state }) =>
    state.status === "completed" && state.pruned !== undefined
      ? [{ path: state.pruned, output: state.output }]
      : [],
  )
  expect(pruned.length).toBeGreaterThan(0)
  for (const { path, output } of pruned) expect(await readFile(path, "utf8")).toBe(output)
  const last = engine.server.requests.at(-1)
  expect(JSON.stringify(last?.body)).toContain(pruned[0]?.path)
  for (const request of engine.server.requests) expect(pairs(request).results).toEqual(pairs(request).calls)
})

test("summarizes outputs that cannot be saved to a file", async () => {
  const files = { "long.txt": long, ".data/truncate": "a file in place of the directory" }
  const script = narrow(16_000, [read, read, read, read, { text: "all read" }])
  const permission = { "*": "allow", doom_loop: "allow" } as const
  await using engine = await startEngine(script, { ...allowed, permission, files })
  const { session, end } = await run(engine, { text: "read it four times" })
  expect(end).toMatchObject({ status: "completed", text: "all read" })
  expect(JSON.stringify(engine.server.requests.at(-1)?.body.messages)).toContain("SUMMARY")
  for (const { state } of await toolParts(session))
    expect(state.status === "completed" && state.pruned).toBe(undefined)
})

test("summarizes what pruning cannot shorten, and keeps the request, open to-dos and newest messages", async () => {
  const todos = [
    { content: "first thing", status: "completed" },
    { content: "second thing", status: "in_progress" },
  ]
  const words = "tell ".repeat(900)
  const script = narrow(17_000, [
    { text: words, calls: [{ name: "todowrite", arguments: { todos } }] },
    { text: words, calls: [{ name: "todoread", arguments: {} }] },
    { text: words, calls: [{ name: "todoread", arguments: {} }] },
    { text: words, calls: [{ name: "todoread", arguments: {} }] },
    { text: "the end" },
  ])
  await using engine = await startEngine(script, allowed)
  const { session, end } = await run(engine, { text: "say much" })
  expect(end).toMatchObject({ status: "completed", text: "the end" })
  const last = engine.server.requests.at(-1)
  const told = JSON.stringify(last?.body.messages)
  expect(told.includes("SUMMARY")).toBe(true)
  expect(told).toContain("verbatim:\\nsay much")
  expect(told).toContain("- second thing (in_progress)")
  expect(told).not.toContain("- first thing")
  if (last) expect(pairs(last).results).toEqual(pairs(last).calls)
  const parts = (await session.messages()).flatMap((entry) => entry.parts)
  expect(parts.filter(({ type }) => type === "compaction")).toMatchObject([{ auto: true }])
  // The store still has everything.
  expect(parts.filter((part) => part.type === "text" && part.text === words)).toHaveLength(4)
})

test("compacts before the next step when the last one exceeded the model's limit", async () => {
  const words = "tell ".repeat(400)
  const usage = { input: 900, output: 10 }
  const script = narrow(1_000_000, [
    { text: words, calls: [{ name: "todoread", arguments: {} }], usage: { input: 100, output: 10 } },
    { text: words, calls: [{ name: "todoread", arguments: {} }], usage },
  ])
  const limits = { limit: { context: 1_000, output: 100 } }
  await using engine = await startEngine(script, allowed)
  const { url } = engine.server
  const providers = { test: { options: { baseURL: url, apiKey: "k" }, models: { m: limits } } }
  await using narrowEngine = await startEngine(script, { ...allowed, providers })
  const { end } = await run(narrowEngine, { text: "go" })
  expect(end.status).toBe("completed")
  const kinds = engine.server.requests.map((request) => (isSummary(request) ? "summary" : "step"))
  expect(kinds).toEqual(["step", "step", "summary", "step"])
})

test("ends the run when the model refuses every history", async () => {
  const script = (request: RecordedRequest): Reply => (isSummary(request) ? { text: "S" } : tooLong)
  await using engine = await startEngine(script, allowed)
  const { end } = await run(engine, { text: "much ".repeat(1_000) })
  expect(end.status).toBe("failed")
  expect(engine.server.requests.length).toBeLessThan(8)
})

test("rejects a summary that is not shorter after two attempts, and replaces nothing", async () => {
  const script = narrow(1_000_000, [{ text: "x ".repeat(500) }], { text: "long ".repeat(2_000) })
  await using engine = await startEngine(script, allowed)
  const { session } = await run(engine)
  await expect(session.compact()).rejects.toThrow(CompactionError)
  expect(engine.server.requests.filter(isSummary)).toHaveLength(2)
  await run(engine, { session, text: "and now?" })
  expect(JSON.stringify(engine.server.requests.at(-1)?.body)).toContain("x x x")
})

test("compacts on request, and another engine continues from the summary", async () => {
  const script = narrow(1_000_000, [{ text: "x ".repeat(2_000) }, { text: "y ".repeat(2_000) }])
  await using engine = await startEngine(script, allowed)
  const { session } = await run(engine)
  await run(engine, { session, text: "more" })
  const { before, after, summarized } = await session.compact()
  expect(summarized).toBe(true)
  expect(after).toBeLessThan(before)
  const copy = await engine.tackle.sessions.fork(session.id)
  await run(engine, { ...(copy ? { session: copy } : {}), text: "and now?" })
  const told = JSON.stringify(engine.server.requests.at(-1)?.body.messages)
  expect(told).toContain("SUMMARY")
  expect(told).not.toContain("x x x")
})

test("remembers in the summary which files were read and written", async () => {
  const read = (filePath: string) => ({ calls: [{ name: "read", arguments: { filePath } }] })
  const write = { calls: [{ name: "write", arguments: { filePath: "b.txt", content: "new" } }] }
  const script = narrow(1_000_000, [read("a.txt"), write, { text: "x ".repeat(4_000) }, { text: "done" }])
  await using engine = await startEngine(script, { ...allowed, files: { "a.txt": "one\n" } })
  const { session } = await run(engine)
  const seenOf = async () => {
    const parts = (await session.messages()).flatMap((message) => message.parts)
    return parts.findLast((part) => part.type === "compaction")?.seen
  }
  await session.compact()
  const digest = expect.stringMatching(/^[0-9a-f]{64}$/)
  expect(await seenOf()).toEqual([
    { path: engine.project.path("a.txt"), stamp: { size: 4, mtimeMs: expect.any(Number), digest } },
    { path: engine.project.path("b.txt"), stamp: { size: 3, mtimeMs: expect.any(Number), digest } },
  ])
})

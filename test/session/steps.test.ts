import { expect, test } from "vitest"
import type { Reply } from "../../src/testing/reply.ts"
import { startEngine } from "./engine.ts"
import { resultsOf, run, toolParts } from "./run.ts"

const read = { name: "read", arguments: { filePath: "a.txt" } }
const files = { "a.txt": "x\n" }

test("tells a model that calls in its last step why nothing runs", async () => {
  await using engine = await startEngine(() => ({ calls: [read] }), { files })
  const { session, end } = await run(engine, { maxSteps: 1 })
  expect(end).toMatchObject({ status: "limit", exitCode: 4 })
  expect((await toolParts(session))[0]?.state).toMatchObject({
    status: "error",
    metadata: { kind: "closed" },
  })
  expect((await resultsOf(session))[0]).toMatch(/this is the only step/)
  const [request] = engine.server.requests
  expect(request?.body.tool_choice).toBe("none")
  expect(request?.body.tools?.length).toBeGreaterThan(5)
})

test("allows calls again in the prompt after a limit", async () => {
  await using engine = await startEngine(
    (_, index) => (index === 1 ? { calls: [read] } : { text: `Answer ${index}.` }),
    { files },
  )
  const { session, end } = await run(engine, { maxSteps: 1 })
  expect(end).toMatchObject({ status: "limit", text: "Answer 0." })
  expect((await run(engine, { session })).end).toMatchObject({ status: "completed", text: "Answer 2." })
})

test("asks again at each further repetition, and continues when allowed", async () => {
  await using engine = await startEngine((_, index) => (index < 5 ? { calls: [read] } : { text: "Done." }), {
    files,
  })
  const counts: unknown[] = []
  engine.tackle.on("permission.asked", (request) => {
    counts.push(request.metadata?.count)
    void request.reply("once")
  })
  expect((await run(engine)).end.exitCode).toBe(0)
  expect(counts).toEqual([3, 4, 5])
})

test("tells the model which calls repeat in a refused cycle", async () => {
  const other = { name: "read", arguments: { filePath: "b.txt" } }
  await using engine = await startEngine(
    (_, index) => (index < 6 ? { calls: [index % 2 === 0 ? read : other] } : { text: "Done." }),
    { files: { ...files, "b.txt": "y\n" }, permission: { doom_loop: "deny" } },
  )
  const { session } = await run(engine)
  expect((await resultsOf(session)).map((text) => text.startsWith("Error"))).toEqual([
    ...Array(5).fill(false),
    true,
  ])
  expect((await resultsOf(session))[5]).toMatch(/the same 2 calls were made 3 times in a row/)
})

test("ends the run after three identical malformed calls", async () => {
  await using engine = await startEngine(() => ({ calls: [{ name: "nosuch", arguments: {} }] }))
  const { end } = await run(engine)
  expect(end).toMatchObject({ status: "limit", exitCode: 4 })
  expect(engine.server.requests.length).toBe(5)
})

test("reports a loop that a rule refused, and continues with other calls", async () => {
  await using engine = await startEngine((_, index) => (index < 3 ? { calls: [read] } : { text: "Done." }), {
    files,
    permission: { doom_loop: "deny" },
  })
  const { session, end } = await run(engine)
  expect((await resultsOf(session))[2]).toMatch(
    /^Error: This read call was not run, because the same call was made 3 times/,
  )
  expect(end).toMatchObject({
    status: "completed",
    exitCode: 3,
    refused: [{ permission: "doom_loop", by: "rule" }],
  })
})

test("adds up tokens and cost of all steps", async () => {
  const usage = { input: 1_000, output: 500, cached: 200, reasoning: 100 }
  await using engine = await startEngine(
    [
      { calls: [read], usage },
      { text: "Done.", usage },
    ],
    { files },
  )
  const providers = {
    test: {
      options: { baseURL: engine.server.url, apiKey: "k" },
      models: { m: { cost: { input: 1, output: 10, cache_read: 0.1 } } },
    },
  }
  await using priced = await startEngine([], { files, providers, directory: engine.project.directory })
  const { session, end } = await run(priced)
  expect(end.usage).toMatchObject({ input: 1_600, output: 800, reasoning: 200, cacheRead: 400 })
  // Two steps with 800 fresh, 200 cached and 500 written tokens.
  expect(end.usage.cost).toBeCloseTo((2 * (800 * 1 + 200 * 0.1 + 500 * 10)) / 1_000_000, 10)
  const finished = (await session.messages()).flatMap(({ parts }) =>
    parts.filter(({ type }) => type === "step-finish"),
  )
  expect(finished).toMatchObject([{ reason: "tool-calls" }, { reason: "stop" }])
})

const faults: [string, Reply, RegExp][] = [
  ["status 500", { status: 500, text: "oh no" }, /oh no/],
  ["status 503", { status: 503, text: "busy" }, /busy/],
  ["a cut stream", { text: "half of it", calls: [read], pieceSize: 2, fault: "cut" }, /./],
  [
    "a stream that falls silent",
    { text: "half of it", calls: [read], pieceSize: 2, fault: "hang-mid" },
    /nothing for/,
  ],
  ["no answer", { fault: "hang" }, /nothing for/],
]

test.each(faults)(
  "%s: removes what the attempt left, records the retry and completes",
  async (_, reply, reason) => {
    await using engine = await startEngine(
      (_request, index) => (index === 0 ? reply : { text: "All of it." }),
      {
        limits: { stream: { firstByteMs: 300, idleMs: 300 } },
      },
    )
    const { session, events, end } = await run(engine)
    expect(end).toMatchObject({ status: "completed", exitCode: 0, text: "All of it." })
    const [, answer] = await session.messages()
    expect(answer?.parts.map(({ type }) => type)).toEqual(["step-start", "retry", "text", "step-finish"])
    const retry = answer?.parts.find((part) => part.type === "retry")
    expect(retry).toMatchObject({ attempt: 1, error: expect.stringMatching(reason) })
    const created = new Set(events.flatMap((event) => (event.type === "part.updated" ? [event.part.id] : [])))
    const removed = events.flatMap((event) => (event.type === "part.removed" ? [event.partID] : []))
    const left = (await session.messages()).flatMap(({ parts }) => parts.map(({ id }) => id))
    expect(new Set([...left, ...removed])).toEqual(created)
    // The failed attempt is not sent back.
    expect(JSON.stringify(engine.server.requests[1]?.body.messages)).not.toContain("half of it")
  },
)

test("fails at once for a wait above the ceiling, and reports the wait", async () => {
  await using engine = await startEngine([{ status: 429, headers: { "retry-after": "3600" }, text: "later" }])
  const { end, events } = await run(engine)
  expect(end).toMatchObject({ status: "failed", exitCode: 1 })
  expect(JSON.stringify(events)).toMatch(/60 min|3600 s/)
  expect(engine.server.requests.length).toBe(1)
})

test("stops retrying with the last error and closes the parts of the last attempt", async () => {
  await using engine = await startEngine(
    () => ({ text: "half", calls: [read], pieceSize: 1, fault: "cut" }),
    {
      limits: { retry: { maxAttempts: 1 } },
    },
  )
  const { session, end } = await run(engine)
  expect(end).toMatchObject({ status: "failed", exitCode: 1 })
  const [, answer] = await session.messages()
  expect(answer?.message).toMatchObject({
    error: { name: "provider" },
    time: { completed: expect.any(Number) },
  })
  for (const part of answer?.parts ?? []) {
    if (part.type === "tool") expect(part.state.status).toBe("error")
    if (part.type === "text") expect(part.time?.end).toBeDefined()
  }
})

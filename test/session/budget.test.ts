import { describe, expect, test } from "vitest"
import { only } from "../cli/run-tackle.ts"
import { startEngine } from "./engine.ts"
import { resultsOf, run } from "./run.ts"

const look = { name: "list", arguments: { path: "." } }
const priced = { input: 1_000, output: 2_000, cache_read: 100, cache_write: 1_250 }

/** An engine with a priced model: a step of 100 + 10 tokens costs $0.12. */
async function pricedEngine(script: Parameters<typeof startEngine>[0], cost: typeof priced | undefined) {
  const engine = await startEngine(script)
  const { url } = engine.server
  const models = { m: cost ? { cost } : {} }
  const priced = await startEngine(script, {
    permission: "allow",
    providers: { test: { options: { baseURL: url, apiKey: "k" }, models } },
  })
  return {
    ...priced,
    server: engine.server,
    async [Symbol.asyncDispose]() {
      await priced[Symbol.asyncDispose]()
      await engine[Symbol.asyncDispose]()
    },
  }
}

const usage = { input: 100, output: 10 }

describe("a limit that is used up allows one more step without calls, and exit code 4", () => {
  test("for cost", async () => {
    await using engine = await pricedEngine(() => ({ calls: [look], usage }), priced)
    const { end, session, events } = await run(engine, { maxCost: 0.2 })
    expect(end).toMatchObject({ status: "limit", exitCode: 4 })
    expect(only(events, "session.error")[0]?.error.message).toBe(
      "The run was stopped: it reached its limit of $0.2 (set by --max-cost).",
    )
    expect(engine.server.requests.map(({ body }) => body.tool_choice)).toEqual(["auto", "auto", "none"])
    expect((await resultsOf(session)).at(-1)).toMatch(/no further calls are possible/)
    expect(end.usage.cost).toBeCloseTo(0.36)
  })

  test("for tokens", async () => {
    await using engine = await startEngine(() => ({ calls: [look], usage }))
    const { end, events } = await run(engine, { maxTokens: 110 })
    expect(end).toMatchObject({ status: "limit", exitCode: 4 })
    expect(only(events, "session.error")[0]?.error.message).toContain(
      "110 tokens (set by --max-tokens, or by subagent.tokens in the config)",
    )
    expect(engine.server.requests).toHaveLength(2)
  })
})

test("does not stop a run below its limits", async () => {
  await using engine = await pricedEngine(() => ({ text: "done", usage }), priced)
  expect((await run(engine, { maxCost: 1, maxTokens: 1_000 })).end).toMatchObject({ exitCode: 0 })
})

test("refuses a cost limit without prices before it asks the model", async () => {
  await using engine = await pricedEngine(() => ({ text: "done", usage }), undefined)
  const { end, events } = await run(engine, { maxCost: 1 })
  expect(end.exitCode).toBe(2)
  expect(only(events, "session.error")[0]?.error.message).toContain("provider.test.models.m.cost")
  expect(engine.server.requests).toHaveLength(0)
})

test("counts the usage of a subagent, and limits it to the rest of the budget", async () => {
  const task = {
    name: "task",
    arguments: { description: "Look", prompt: "look around", subagent_type: "general" },
  }
  await using engine = await pricedEngine(({ body }, index) => {
    if (index === 0) return { calls: [task], usage }
    const isChild = !body.tools?.some(({ function: { name } }) => name === "task")
    return { calls: [isChild ? look : task], usage }
  }, priced)
  const { end, session } = await run(engine, { maxCost: 0.3 })
  expect(end).toMatchObject({ status: "limit", exitCode: 4 })
  // One step of its own costs 0.12. The remaining 0.18 allow the subagent two steps and a last one; then the run has
  // its last one.
  expect(engine.server.requests.map(({ body }) => body.tool_choice)).toEqual([
    "auto",
    "auto",
    "auto",
    "none",
    "none",
  ])
  const { sessions, usage: all, models, tools } = await engine.tackle.sessions.stats({ session: session.id })
  expect({ sessions, cost: all.cost.toFixed(2), steps: models[0]?.steps }).toEqual({
    sessions: 2,
    cost: end.usage.cost.toFixed(2),
    steps: 5,
  })
  expect(tools.map(({ tool, calls, failed }) => [tool, calls, failed])).toEqual([
    ["list", 3, 1],
    ["task", 2, 1],
  ])
})

test("shares the rest among parallel subagents", async () => {
  const task = (description: string) => ({
    name: "task",
    arguments: { description, prompt: "look around", subagent_type: "general" },
  })
  await using engine = await pricedEngine(({ body }, index) => {
    if (index === 0) return { calls: ["one", "two", "three"].map(task), usage }
    return {
      calls: body.tools?.some(({ function: { name } }) => name === "task") ? [] : [look],
      text: "t",
      usage,
    }
  }, priced)
  const { end } = await run(engine, { maxCost: 0.72 })
  expect(end).toMatchObject({ status: "limit", exitCode: 4 })
  // One step of 0.12 leaves 0.6, so five of theirs. At most one more of each is running then, and one is its last.
  expect(engine.server.requests.length).toBeLessThanOrEqual(1 + 5 + 3 + 3 + 1)
})

test("uses separate prices for cache reads and writes", async () => {
  await using engine = await pricedEngine(
    () => ({ text: "ok", usage: { input: 1_000, output: 100, cached: 900, reasoning: 50 } }),
    priced,
  )
  const { end } = await run(engine)
  expect(end.usage).toMatchObject({ input: 100, cacheRead: 900, output: 50, reasoning: 50 })
  expect(end.usage.cost).toBeCloseTo((100 * 1_000 + 900 * 100 + 100 * 2_000) / 1_000_000)
})

test("warns once before the history fills the context", async () => {
  const sizes = [100, 700, 750, 780, 100]
  await using engine = await startEngine((_, index) => ({
    ...(index < 4 ? { calls: [{ name: "list", arguments: { path: ".", ignore: [`x${index}`] } }] } : {}),
    text: "t",
    usage: { input: sizes[index] ?? 1, output: 10 },
  }))
  const { url } = engine.server
  await using narrow = await startEngine([], {
    permission: "allow",
    providers: {
      test: {
        options: { baseURL: url, apiKey: "k" },
        models: { m: { limit: { context: 1_000, output: 100 } } },
      },
    },
  })
  const { events } = await run(narrow)
  expect(only(events, "context.filling")).toMatchObject([{ used: 760, room: 900 }])
})

test("does not count copied history of a fork again", async () => {
  await using engine = await pricedEngine(() => ({ text: "ok", usage }), priced)
  const { session } = await run(engine)
  const fork = await engine.tackle.sessions.fork(session.id)
  // The clock has a resolution of one millisecond: the fork is newer than what it copied.
  expect(fork?.info().time.created).toBeGreaterThan(0)
  const { sessions, prompts, usage: all } = await engine.tackle.sessions.stats()
  expect({ sessions, prompts, input: all.input }).toEqual({ sessions: 2, prompts: 1, input: 100 })
})

import { expect, test } from "vitest"
import * as z from "zod"
import type { Info } from "../../src/tool/tool.ts"
import { startEngine } from "../session/engine.ts"
import { resultsOf, run, tool, toolParts } from "../session/run.ts"

const once = (...names: string[]) => [
  { calls: names.map((name) => ({ name, arguments: {} })) },
  { text: "Done." },
]

const fine = { title: "fine", output: "fine" }

/** Calls each tool once, with everything allowed. Returns the parts and the results that the model read. */
async function callAll(tools: Info[], options: { timeoutMs?: number } = {}) {
  const faults: string[] = []
  await using engine = await startEngine(once(...tools.map(({ id }) => id)), {
    tools,
    permission: { "*": "allow" },
    onProblem: (message, error) => faults.push(`${message}: ${String(error)}`),
    ...options,
  })
  const { session, end } = await run(engine)
  return { end, faults, results: await resultsOf(session), parts: await toolParts(session) }
}

test("fails only the call whose schema throws", async () => {
  const throwing = z.object({}).transform((): Record<string, unknown> => {
    throw new Error("no such luck")
  })
  const { end, results } = await callAll([
    tool("schema", async () => fine, { parameters: throwing }),
    tool("words", async () => fine, {
      parameters: z.object({ name: z.string() }),
      formatValidationError: () => {
        throw new Error("no words")
      },
    }),
    tool("good", async () => fine),
  ])
  expect(end).toMatchObject({ status: "completed", exitCode: 0 })
  expect(results[0]).toMatch(/^Error: The schema tool could not check its arguments: no such luck/)
  expect(results[1]).toMatch(
    /^Error: The words tool was called with invalid arguments: name: expected string/,
  )
  expect(results[2]).toBe("fine")
})

test("limits the text of an error, and keeps the whole text in a file", async () => {
  const text = `${"x".repeat(99)}\n`.repeat(1_000_000)
  const { results, parts, end } = await callAll([
    tool("lines", async () => {
      throw new Error(text)
    }),
    tool("line", async () => {
      throw new Error(text.replaceAll("\n", ""))
    }),
  ])
  expect(end).toMatchObject({ status: "completed" })
  for (const [index, result] of results.entries()) {
    expect(result.length).toBeLessThan(60_000)
    const metadata = { kind: "failed", truncated: true, outputPath: expect.any(String) }
    expect(parts[index]?.state).toMatchObject({ metadata })
  }
})

const hostile: [string, () => unknown][] = [
  ["a proxy whose traps throw", () => throwingProxy({})],
  ["a proxy of an error", () => throwingProxy(new Error("x"))],
  ["a revoked proxy", revokedProxy],
  [
    "an error with getters that throw",
    () => Object.defineProperties(new Error("x"), getters("message", "code", "name")),
  ],
  [
    "an object with getters that throw",
    () => Object.defineProperties({}, getters("message", "code", "toString")),
  ],
  ["an error whose message is not text", () => Object.assign(new Error("x"), { message: Symbol("m") })],
  ["an object without a prototype", () => Object.create(null)],
  ["undefined", () => undefined],
]

function throwingProxy(target: object): object {
  const refuse = () => {
    throw new Error("trap")
  }
  return new Proxy(target, { get: refuse, has: refuse, getPrototypeOf: refuse, ownKeys: refuse })
}

function revokedProxy(): object {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}

function getters(...names: string[]): PropertyDescriptorMap {
  const get = () => {
    throw new Error("getter")
  }
  return Object.fromEntries(names.map((name) => [name, { get }]))
}

test.each(hostile)("fails only the call that throws %s, at once or later", async (_, make) => {
  const { end, results, parts } = await callAll([
    tool("thrower", async () => {
      throw make()
    }),
    tool("later", async () => {
      void Promise.reject(make())
      await new Promise((next) => setTimeout(next, 20))
      return fine
    }),
    tool("schema", async () => fine, {
      parameters: z.object({}).transform((): Record<string, unknown> => {
        throw make()
      }),
    }),
    tool("good", async () => fine),
  ])
  expect(end).toMatchObject({ status: "completed", exitCode: 0 })
  expect(results).toEqual([
    expect.stringMatching(/^Error: ./),
    "fine",
    expect.stringMatching(/^Error: ./),
    "fine",
  ])
  expect(parts.map(({ state }) => state.status)).toEqual(["error", "completed", "error", "completed"])
})

test("ends the run on an interrupt, even if a schema never answers", async () => {
  const endless = z.object({}).refine(() => new Promise<boolean>(() => {}))
  await using engine = await startEngine(once("endless"), {
    tools: [tool("endless", async () => fine, { parameters: endless })],
  })
  const session = await engine.tackle.sessions.create()
  const started = session.prompt("go")
  for await (const event of started)
    if (event.type === "message.updated" && event.message.role === "assistant") void session.abort()
  expect(await started.completed).toMatchObject({ status: "interrupted" })
  expect((await toolParts(session))[0]?.state).toMatchObject({
    status: "error",
    metadata: { kind: "aborted" },
  })
})

test("replaces metadata that is not JSON by a note", async () => {
  const circle: Record<string, unknown> = {}
  circle.self = circle
  const { end, parts } = await callAll([
    tool("progress", async (_, ctx) => {
      await ctx.metadata({ metadata: { circle }, step: 1 })
      throw new Error("afterwards")
    }),
    tool("result", async () => ({
      ...fine,
      metadata: { circle, count: 1n, when: new Date(0), none: undefined },
    })),
  ])
  expect(end.exitCode).toBe(0)
  expect(parts[0]?.state).toMatchObject({
    status: "error",
    error: "afterwards",
    metadata: { step: 1, circle: expect.stringMatching(/^\[not JSON: .*circular/) },
  })
  expect(parts[1]?.state).toMatchObject({
    status: "completed",
    metadata: { count: expect.stringMatching(/BigInt/), when: "1970-01-01T00:00:00.000Z" },
  })
})

test.each([
  ["nothing", undefined, /expected an object, got undefined/],
  ["null", null, /expected an object, got null/],
  ["an output that is no text", { title: "x", output: 7 }, /"output" must be a string/],
  [
    "attachments that are none",
    { ...fine, attachments: [{ type: "file" }] },
    /"attachments" is not valid: 0\.mime/,
  ],
  ["one attachment instead of a list", { ...fine, attachments: {} }, /"attachments" is not valid/],
])("reports a tool that returns %s, and continues", async (_, result, message) => {
  await using engine = await startEngine([...once("odd"), { text: "Still here." }], {
    tools: [tool("odd", async () => result)],
    permission: { "*": "allow" },
  })
  const { session, end } = await run(engine)
  expect(end.exitCode).toBe(0)
  expect((await resultsOf(session))[0]).toMatch(message)
  expect((await run(engine, { session })).end.text).toBe("Still here.")
})

test("fails only the call of a tool that throws a non-error or throws synchronously", async () => {
  const { end, results } = await callAll([
    tool("text", async () => {
      throw "just a text"
    }),
    tool("nothing", async () => {
      throw undefined
    }),
    tool("synchronous", () => {
      throw new Error("at once")
    }),
    tool("object", async () => {
      throw { reason: "an object" }
    }),
  ])
  expect(end.exitCode).toBe(0)
  expect(results).toEqual([
    "Error: just a text",
    "Error: undefined",
    "Error: at once",
    'Error: {"reason":"an object"}',
  ])
})

test("reports an error that escapes after the result, and the process continues", async () => {
  const faults: string[] = []
  await using engine = await startEngine(once("late"), {
    tools: [
      tool("late", async () => {
        setTimeout(() => void Promise.reject(new Error("much later")), 20)
        return fine
      }),
    ],
    permission: { "*": "allow" },
    onProblem: (message, error) => faults.push(`${message}: ${String(error)}`),
  })
  expect((await run(engine)).end.exitCode).toBe(0)
  await expect.poll(() => faults).toEqual(["uncaught error in the late tool: Error: much later"])
})

test("stops a tool at its own time limit, distinct from an interrupt", async () => {
  const { end, parts } = await callAll([
    tool("slow", (_, ctx) => new Promise((_resolve, reject) => ctx.abort.addEventListener("abort", reject)), {
      timeout: 50,
    }),
  ])
  expect(end).toMatchObject({ status: "completed", exitCode: 0 })
  expect(parts[0]?.state).toMatchObject({
    status: "error",
    error: expect.stringMatching(
      /^The slow tool did not finish within 50 ms\. The call may have taken effect/,
    ),
    metadata: { kind: "timeout" },
  })
})

test("treats an infinite limit as none", async () => {
  const { results } = await callAll([
    tool("patient", () => new Promise((resolve) => setTimeout(resolve, 50, fine)), {
      timeout: Number.POSITIVE_INFINITY,
    }),
  ])
  expect(results).toEqual(["fine"])
})

test("does not count time spent waiting for the user", async () => {
  await using engine = await startEngine(once("asking"), {
    tools: [
      tool(
        "asking",
        async (_, ctx) => {
          await ctx.ask({ permission: "bash", patterns: ["rm x"] })
          return fine
        },
        { timeout: 100 },
      ),
    ],
  })
  const asked: string[] = []
  engine.tackle.on("permission.asked", (request) => {
    asked.push(request.permission)
    setTimeout(() => void request.reply("once"), 200)
  })
  const { session } = await run(engine)
  expect(asked).toEqual(["asking", "bash"])
  expect(await resultsOf(session)).toEqual(["fine"])
})

test("does not wait for a tool that ignores an interrupt", async () => {
  const { promise: later, resolve: wake } = Promise.withResolvers<void>()
  const { promise: done, resolve: finish } = Promise.withResolvers<string>()
  await using engine = await startEngine([...once("stubborn").slice(0, 1), { text: "Again." }], {
    tools: [
      tool("stubborn", async (_, ctx) => {
        void session.abort()
        await later
        await ctx.metadata({ title: "still at it" })
        const refused = await ctx
          .ask({ permission: "bash", patterns: ["ls"] })
          .catch((error: unknown) => error)
        finish(String(refused))
        return fine
      }),
    ],
    permission: { "*": "allow" },
  })
  const session = await engine.tackle.sessions.create()
  expect((await run(engine, { session })).end).toMatchObject({ status: "interrupted", exitCode: 130 })
  const [before] = await toolParts(session)
  expect(before?.state).toMatchObject({ status: "error", metadata: { kind: "aborted" } })
  wake()
  expect(await done).toMatch(/abort/i)
  expect((await run(engine, { session })).end.text).toBe("Again.")
  expect((await toolParts(session))[0]).toEqual(before)
})

test("runs eight calls in parallel", async () => {
  const { promise: everybody, resolve: open } = Promise.withResolvers<void>()
  let here = 0
  const meeting = tool("meet", async ({ n }) => {
    here += 1
    if (here === 8) open()
    await everybody
    return { title: "met", output: String(n) }
  })
  await using engine = await startEngine(
    [{ calls: Array.from({ length: 8 }, (_, n) => ({ name: "meet", arguments: { n } })) }, { text: "Done." }],
    { tools: [meeting], permission: { "*": "allow" } },
  )
  const warnings: Error[] = []
  const note = (warning: Error) => warnings.push(warning)
  process.on("warning", note)
  const { session } = await run(engine)
  process.off("warning", note)
  expect(await resultsOf(session)).toEqual(["0", "1", "2", "3", "4", "5", "6", "7"])
  expect(warnings).toEqual([])
})

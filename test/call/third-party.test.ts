import { expect, test } from "vitest"
import type { PermissionConfig } from "../../src/permission/rules.ts"
import type { PermissionRequest } from "../../src/schema/permission.ts"
import type { Definition } from "../../src/tool/tool.ts"
import { startEngine } from "../session/engine.ts"
import { resultsOf, run, tool } from "../session/run.ts"

/** Calls `mine` with `{ b: 1, a: "x" }`. Returns the requests, whether it ran, and what the model read. */
async function call(
  definition: Partial<Definition>,
  options: { permission?: PermissionConfig; execute?: Definition["execute"] } = {},
) {
  let runs = 0
  const mine = tool(
    "mine",
    async (args, ctx) => {
      runs += 1
      return (await options.execute?.(args, ctx)) ?? { title: "mine", output: "ran" }
    },
    definition,
  )
  await using engine = await startEngine(
    [{ calls: [{ name: "mine", arguments: { b: 1, a: "x" } }] }, { text: "Done." }],
    { tools: [mine], ...(options.permission ? { permission: options.permission } : {}) },
  )
  const asked: PermissionRequest[] = []
  engine.tackle.on("permission.asked", (request) => {
    const { reply, ...plain } = request
    asked.push(plain)
    void reply("once")
  })
  const { session, end } = await run(engine)
  return { asked, runs, end, results: await resultsOf(session) }
}

test("asks with the canonical arguments for a tool that has no ask function", async () => {
  const { asked, runs } = await call({ access: "read" })
  expect(asked).toMatchObject([
    { permission: "mine", patterns: ['{"a":"x","b":1}'], always: ["*"], metadata: { tool: "mine" } },
  ])
  expect(runs).toBe(1)
})

test("matches rules against the patterns of the tool's ask", async () => {
  const ask = (args: unknown) => ({ patterns: [`a=${(args as { a: string }).a}`], always: ["a=*"] })
  const { asked } = await call({ ask })
  expect(asked).toMatchObject([{ permission: "mine", patterns: ["a=x"], always: ["a=*"] }])
  expect((await call({ ask }, { permission: { mine: { "*": "ask", "a=x": "allow" } } })).asked).toEqual([])
  const denied = await call({ ask }, { permission: { mine: { "*": "allow", "a=x": "deny" } } })
  expect(denied).toMatchObject({ runs: 0, end: { exitCode: 3 } })
})

test("rejects an ask that returns anything but patterns", async () => {
  const ask = () => ({ permission: "glob", paths: [], patterns: ["src"], metadata: { tool: "glob" } })
  const { asked } = await call({ ask })
  expect(asked).toMatchObject([{ permission: "mine", patterns: ["src"], metadata: { tool: "mine" } }])
})

test("offers always for the patterns of an ask that proposes no rule", async () => {
  const { asked } = await call({ ask: () => ({ patterns: ["users/5"] }) })
  expect(asked).toMatchObject([{ permission: "mine", always: ["users/5"] }])
})

test("treats an empty ask as a request for everything", async () => {
  const { asked } = await call({ ask: () => ({ patterns: [] }) })
  expect(asked).toMatchObject([{ permission: "mine", patterns: ["*"] }])
})

test.each([
  ["a promise", async () => ({ patterns: ["x"] })],
  ["a text", () => "x"],
  ["patterns that are no texts", () => ({ patterns: [1] })],
  ["always that is no list", () => ({ patterns: ["x"], always: "x" })],
  [
    "an error",
    () => {
      throw new Error("do not ask me")
    },
  ],
])("does not run a tool whose ask returns %s", async (_, ask) => {
  const { asked, runs, results, end } = await call(
    { ask: ask as unknown as NonNullable<Definition["ask"]> },
    { permission: { "*": "allow" } },
  )
  expect({ asked, runs, exitCode: end.exitCode }).toEqual({ asked: [], runs: 0, exitCode: 0 })
  expect(results[0]).toMatch(/must return \{ patterns: string\[\]|do not ask me/)
})

test("does not ask twice for the tool's own id, but applies a deny", async () => {
  const execute: Definition["execute"] = async (_, ctx) => {
    await ctx.ask({ permission: "mine", patterns: ["part of it"] })
    await ctx.ask({ permission: "bash", patterns: ["rm x"] })
    return { title: "mine", output: "did it" }
  }
  const allowed = await call({}, { execute })
  expect(allowed.asked.map(({ permission }) => permission)).toEqual(["mine", "bash"])
  expect(allowed.results).toEqual(["did it"])
  const denied = await call({}, { execute, permission: { mine: { "part of it": "deny" } } })
  expect(denied.asked.map(({ permission }) => permission)).toEqual(["mine"])
  expect(denied.results[0]).toMatch(/^Error: Not allowed: mine "part of it"/)
  expect(denied.end.exitCode).toBe(3)
})

test("passes the reason of a refusal to the model, and continues", async () => {
  let runs = 0
  await using engine = await startEngine(
    [{ calls: [{ name: "mine", arguments: {} }] }, { text: "As you wish." }],
    { tools: [tool("mine", async () => ({ title: "", output: String(++runs) }))] },
  )
  engine.tackle.on("permission.asked", (request) => {
    void request.reply({ reply: "reject", message: "use the other one" })
  })
  const { session, end } = await run(engine)
  expect(runs).toBe(0)
  expect((await resultsOf(session))[0]).toMatch(/said: use the other one/)
  expect(end).toMatchObject({ exitCode: 3, text: "As you wish.", refused: [{ tool: "mine", by: "user" }] })
})

test.each(["todo", "external_directory", "doom_loop", "network", "private_network", "sandbox_escape"])(
  "refuses a tool named like the permission %s",
  async (id) => {
    let runs = 0
    const fake = tool(id, async () => {
      runs += 1
      return { title: id, output: "ran" }
    })
    await using engine = await startEngine([{ calls: [{ name: id, arguments: {} }] }, { text: "Done." }], {
      tools: [fake],
      permission: { [id]: "allow" },
    })
    const { session } = await run(engine)
    expect(runs).toBe(0)
    expect(await resultsOf(session)).toEqual([expect.stringMatching(/^Error: .*does not exist/s)])
    expect(engine.tackle.problems()).toMatchObject([
      { message: expect.stringContaining("name of a permission") },
    ])
  },
)

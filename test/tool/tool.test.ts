import { afterEach, expect, test } from "vitest"
import * as z from "zod"
import type { Policy } from "../../src/permission/policy.ts"
import { rulesFromObject } from "../../src/permission/rules.ts"
import { createRegistry } from "../../src/registry/registry.ts"
import { fakeContext } from "../../src/testing/context.ts"
import type { ToolContext } from "../../src/tool/context.ts"
import { readTool } from "../../src/tool/plain-tool.ts"
import { type Definition, define, type InitAgent } from "../../src/tool/tool.ts"
import { startEngine } from "../session/engine.ts"
import { resultsOf, run, tool } from "../session/run.ts"

const lengthOf = z.object({ text: z.string().transform((text) => text.length), times: z.number().default(2) })

/** A tool that repeats a line. Its parameters change the value, so validating twice fails. */
const repeat = (more: Partial<Definition<typeof lengthOf>> = {}) =>
  define("repeat", {
    description: "Repeats.",
    parameters: lengthOf,
    execute: async ({ text, times }) => ({ title: "", output: `${text}\n`.repeat(times) }),
    ...more,
  })

const execute = async (info: ReturnType<typeof repeat>, args: unknown, ctx?: ToolContext) => {
  const { execute } = await info.init()
  return execute(args as z.output<typeof lengthOf>, ctx as ToolContext)
}

const contexts: AsyncDisposable[] = []
function context() {
  const ctx = fakeContext({ directory: "/" })
  contexts.push(ctx)
  return ctx
}
afterEach(async () => {
  for (const ctx of contexts.splice(0)) await ctx[Symbol.asyncDispose]()
})

test("validates the arguments of a direct call and applies defaults", async () => {
  expect(await execute(repeat(), { text: "abc" }, context())).toMatchObject({
    output: "3\n3\n",
    metadata: { truncated: false },
  })
  await expect(execute(repeat(), { text: 1 }, context())).rejects.toThrow(
    "The repeat tool was called with invalid arguments: text: expected string, got 1.\nPlease rewrite the input so it satisfies the expected schema.",
  )
  const own = repeat({ formatValidationError: () => "say it in words" })
  await expect(execute(own, {}, context())).rejects.toThrow(/^say it in words$/)
})

test("truncates the output of a direct call, with or without a context", async () => {
  const long = { text: "abc", times: 3000 }
  const { output, metadata } = await execute(repeat(), long, context())
  expect(output.split("\n").length).toBeLessThanOrEqual(2001)
  expect(metadata).toMatchObject({ truncated: true, outputPath: expect.any(String), originalSize: 6000 })
  expect((await execute(repeat(), long)).metadata).toMatchObject({ truncated: true })
})

test("leaves an output unchanged that the tool truncated itself", async () => {
  const own = repeat({
    execute: async () => ({ title: "", output: "x\n".repeat(3000), metadata: { truncated: true } }),
  })
  expect((await execute(own, { text: "" }, context())).output).toHaveLength(6000)
})

test("validates once if the tool is offered under another id or called by an engine", async () => {
  const offered = readTool("file_name", repeat()) as ReturnType<typeof repeat>
  expect(await execute(offered, { text: "abc" }, context())).toMatchObject({ output: "3\n3\n" })
  await using engine = await startEngine(
    [{ calls: [{ name: "repeat", arguments: { text: "abc" } }] }, { text: "Done." }],
    { tools: [repeat()], permission: "allow" },
  )
  expect(await resultsOf((await run(engine)).session)).toEqual(["3\n3\n"])
})

test("keeps `this` of a definition with methods", async () => {
  const info = define("counter", () => ({
    description: "Counts.",
    parameters: z.object({}),
    count: 7,
    async execute() {
      return { title: "", output: String((this as unknown as { count: number }).count) }
    },
  }))
  expect(await (await info.init()).execute({}, context())).toMatchObject({ output: "7" })
})

test("passes the agent and its effective rules to init, again when they change", async () => {
  const seen: InitAgent[] = []
  let prepared = 0
  const curious = define("curious", (init) => {
    prepared += 1
    if (init?.agent) seen.push({ ...init.agent })
    return { description: "d", parameters: z.object({}), execute: async () => ({ title: "", output: "" }) }
  })
  const registry = createRegistry({ tools: [{ tool: curious, source: { kind: "library" } }] })
  const policy = (rules: Parameters<typeof rulesFromObject>[0]): Policy => ({
    layers: [
      { name: "user", rules: rulesFromObject({ bash: { "*": "allow", "rm *": "deny" } }) },
      { name: "project", rules: rulesFromObject({ bash: { "rm *": "allow" }, ...(rules as object) }) },
    ],
    ceiling: rulesFromObject({ "*": "allow", edit: "deny" }),
  })
  const scope = (rules: Parameters<typeof rulesFromObject>[0]) => ({
    agent: "plan",
    mode: "primary" as const,
    policy: policy(rules),
  })
  await registry.tools(scope({ edit: "allow" }))
  await registry.tools(scope({ edit: "allow" }))
  expect(prepared).toBe(1)
  expect(seen).toEqual([
    {
      name: "plan",
      mode: "primary",
      permission: [
        { permission: "bash", pattern: "*", action: "allow" },
        { permission: "bash", pattern: "rm *", action: "deny" },
        { permission: "edit", pattern: "*", action: "deny" },
        { permission: "*", pattern: "*", action: "ask" },
      ],
    },
  ])
  await registry.tools(scope({ webfetch: "ask" }))
  expect(seen[1]?.permission).toContainEqual({ permission: "webfetch", pattern: "*", action: "ask" })
})

test("passes the values of the application to the tool as extra", async () => {
  const seen: unknown[] = []
  const spy = tool("spy", async (_, ctx) => {
    seen.push(ctx.extra)
    return { title: "", output: "" }
  })
  await using engine = await startEngine([{ calls: [{ name: "spy", arguments: {} }] }, { text: "Done." }], {
    tools: [spy],
    permission: "allow",
  })
  await run(engine, { extra: { ticket: 7 } })
  await engine.tackle.callTool({ tool: "spy", input: "{}", extra: { ticket: 8 } })
  await engine.tackle.callTool({ tool: "spy", input: "{}" })
  expect(seen).toEqual([{ ticket: 7 }, { ticket: 8 }, {}])
})

test("marks the calls that attach the user's files in extra", async () => {
  const seen: unknown[] = []
  const read = tool("read", async (_, ctx) => {
    seen.push(ctx.extra)
    return { title: "", output: "mine" }
  })
  await using engine = await startEngine([{ text: "Done." }], {
    files: { "a.txt": "a" },
    tools: [read],
    override: ["read"],
    permission: "allow",
  })
  await run(engine, { text: "look at @a.txt", extra: { ticket: 7 } })
  expect(seen).toEqual([{ ticket: 7, bypassCwdCheck: true }])
})

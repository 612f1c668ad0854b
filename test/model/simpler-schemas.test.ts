import { describe, expect, onTestFinished, test } from "vitest"
import * as z from "zod"
import type { OfferedTool } from "../../src/model/call-options.ts"
import { createModels } from "../../src/model/providers.ts"
import { streamStep } from "../../src/model/stream.ts"
import { startModelServer } from "../../src/testing/model-server.ts"
import type { Reply } from "../../src/testing/reply.ts"
import { define } from "../../src/tool/tool.ts"
import { startEngine } from "../session/engine.ts"
import { run } from "../session/run.ts"

const strict = { type: "string", pattern: "^a+$", format: "uri", minLength: 1, maxLength: 100_000 }
const plain = {
  name: "read",
  description: "",
  inputSchema: { type: "object", properties: { a: { type: "string" } } },
}
const limited = {
  name: "s_limited",
  description: "",
  inputSchema: { type: "object", properties: { a: strict } },
}
const grammar = { status: 400, text: '{"error":{"code":400,"message":"failed to parse grammar"}}' }

async function setup(script: Reply[]) {
  const server = await startModelServer({ script })
  onTestFinished(() => server.close())
  const models = createModels({
    config: { s: { options: { baseURL: server.url, apiKey: "k" }, models: { m: {} } } },
    credentials: { key: async () => undefined },
    environment: {},
  })
  const { info, language } = await models.get({ providerID: "s", modelID: "m" })
  async function ask(tools: readonly OfferedTool[] = [plain, limited]): Promise<string> {
    const prompt = [{ role: "user" as const, content: [{ type: "text" as const, text: "hi" }] }]
    let text = ""
    const request = { info, language: await language(), prompt, tools, signal: new AbortController().signal }
    for await (const event of streamStep(request)) if (event.type === "text-delta") text += event.delta
    return text
  }
  const sent = () => server.requests.map(({ body }) => JSON.stringify(body.tools))
  return { ask, sent }
}

test.each([
  ["llama.cpp", 400, "failed to parse grammar"],
  ["llama.cpp with status 500", 500, "Failed to initialize samplers: failed to parse grammar"],
  ["llama.cpp, pattern", 400, "JSON schema conversion failed: Pattern must start with '^' and end with '$'"],
  [
    "Google",
    400,
    'Invalid JSON payload received. Unknown name "pattern" at tools[0].function_declarations[1]',
  ],
  ["vLLM", 400, "The provided JSON schema contains features not supported by xgrammar."],
  ["a server with status 422", 422, "maxLength is not supported"],
])("repeats the request without rules for texts: %s", async (_, status, message) => {
  const { ask, sent } = await setup([
    { status, text: JSON.stringify({ error: { message } }) },
    { text: "ok" },
    { text: "again" },
  ])
  expect(await ask()).toBe("ok")
  const [first, second] = sent()
  expect(first).toContain("maxLength")
  expect(second).not.toMatch(/maxLength|minLength|pattern|format/)
  expect(second).toContain("s_limited")
  // Later requests do not fail first.
  expect(await ask()).toBe("again")
  expect(sent()[2]).toBe(second)
})

test("repeats a request only once, and names the tool", async () => {
  const rejected = { status: 400, text: '{"error":{"message":"Invalid schema for function s_limited"}}' }
  const { ask, sent } = await setup([rejected, rejected, { text: "ok" }])
  await expect(ask()).rejects.toThrow(
    /Invalid schema for function s_limited.*The server rejects the schema of the tool s_limited\. Correct its parameters/,
  )
  expect(sent()).toHaveLength(2)
})

describe("names the tool", () => {
  const odd = {
    name: "odd",
    description: "",
    inputSchema: { type: "object", properties: { a: { not: { type: "string" } } } },
  }
  test.each([
    [
      "by its number",
      "tools[1].function_declarations[1].parameters: schema is invalid",
      [plain, odd, limited],
      "odd",
    ],
    [
      "by its number, as Anthropic does",
      "tools.1.custom.input_schema: JSON schema is invalid",
      [plain, odd],
      "odd",
    ],
    ["by its unusual keywords", "failed to parse grammar", [plain, odd], "odd"],
  ])("%s", async (_, message, tools, name) => {
    const rejected = { status: 400, text: JSON.stringify({ error: { message } }) }
    const { ask } = await setup([rejected, rejected])
    await expect(ask(tools)).rejects.toThrow(`the schema of the tool ${name}.`)
  })
})

test("does not repeat other rejections, or schemas without such rules", async () => {
  const other = await setup([{ status: 400, text: '{"error":{"message":"max_tokens is too large"}}' }])
  await expect(other.ask()).rejects.toThrow("max_tokens is too large")
  expect(other.sent()).toHaveLength(1)
  const simple = await setup([grammar])
  await expect(simple.ask([plain])).rejects.toThrow("failed to parse grammar")
  expect(simple.sent()).toHaveLength(1)
})

test("offers built-in tools without limits of lengths, and validates them", async () => {
  await using engine = await startEngine(
    [
      { calls: [{ name: "job", arguments: { action: "input", id: "job_1", text: "x".repeat(65_537) } }] },
      { text: "." },
    ],
    {
      permission: { "*": "allow" },
      experimental: { plan_mode: true, batch_tool: true, lsp_tool: true },
      questions: true,
    },
  )
  await run(engine)
  const [first, second] = engine.server.requests
  expect(JSON.stringify(first?.body.tools)).not.toMatch(/maxLength|minLength/)
  expect(JSON.stringify(second?.body.messages.at(-1))).toContain(
    "text: Too big: expected string to have <=65536 characters",
  )
})

test("repeats a request in a session with a tool of the application", async () => {
  const tool = define("limited", {
    description: "d",
    parameters: z.object({ a: z.string().max(100_000).optional() }),
    execute: async () => ({ title: "", output: "ran" }),
  })
  await using engine = await startEngine([grammar, { text: "Done." }], { tools: [tool] })
  expect((await run(engine)).end).toMatchObject({ status: "completed", text: "Done." })
})

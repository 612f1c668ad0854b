import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { LanguageModelV4Prompt } from "@ai-sdk/provider"
import { describe, expect, onTestFinished, test } from "vitest"
import type { ModelConfig, ProviderConfig } from "../../src/model/model.ts"
import { refusesTools, toolRefusal } from "../../src/model/provider-error.ts"
import { createModels } from "../../src/model/providers.ts"
import { streamStep } from "../../src/model/stream.ts"
import { openToolSupport, type ToolSupport } from "../../src/model/tool-support.ts"
import { startModelServer } from "../../src/testing/model-server.ts"
import type { Reply } from "../../src/testing/reply.ts"

const prompt: LanguageModelV4Prompt = [{ role: "user", content: [{ type: "text", text: "Read a" }] }]
const read = {
  name: "read",
  description: "Reads a file.",
  inputSchema: { type: "object", properties: { filePath: { type: "string" } } },
}
const answer = '<tool_call>{"name": "read", "arguments": {"filePath": "a"}}</tool_call>'
const noTools = { status: 400, text: "registry.ollama.ai/library/gemma:2b does not support tools" }

async function setup(script: Reply[], options: Partial<ProviderConfig> = {}, model: ModelConfig = {}) {
  const server = await startModelServer({ script })
  const directory = await mkdtemp(join(tmpdir(), "tackle-tools-"))
  onTestFinished(async () => {
    await server.close()
    await rm(directory, { recursive: true, force: true })
  })
  const data = join(directory, "data")
  const file = join(data, "tool-support.json")
  const ask = async (toolSupport: ToolSupport = openToolSupport(data), tools = [read]) => {
    const models = createModels({
      config: { s: { ...options, options: { baseURL: server.url, apiKey: "k" }, models: { m: model } } },
      credentials: { key: async () => undefined },
      environment: {},
      toolSupport,
    })
    const { info, language } = await models.get({ providerID: "s", modelID: "m" })
    const signal = new AbortController().signal
    const calls: unknown[] = []
    let text = ""
    for await (const event of streamStep({ info, language: await language(), prompt, tools, signal })) {
      if (event.type === "tool-call") calls.push([event.tool, event.input])
      if (event.type === "text-delta") text += event.delta
    }
    return { calls, text }
  }
  const offered = () => server.requests.map(({ body }) => body.tools !== undefined)
  return { server, data, file, ask, offered }
}

const found = { calls: [["read", '{"filePath": "a"}']], text: "" }

describe("tool policy", () => {
  test("native: sends tools to the server and does not parse the text", async () => {
    const { ask, offered } = await setup([{ text: answer }], {}, { toolCalling: "native" })
    expect(await ask()).toEqual({ calls: [], text: answer })
    expect(offered()).toEqual([true])
  })

  test("synthetic: describes tools in the prompt and reads calls from the text", async () => {
    const { ask, offered } = await setup([{ text: answer }], {}, { toolCalling: "synthetic" })
    expect(await ask()).toEqual(found)
    expect(offered()).toEqual([false])
  })

  test("uses synthetic for tool_call: false unless the policy says otherwise", async () => {
    const plain = await setup([{ text: answer }], {}, { tool_call: false })
    expect(await plain.ask()).toEqual(found)
    const stricter = await setup([{ text: answer }], { toolCalling: "ignore" }, { tool_call: false })
    expect(await stricter.ask()).toEqual({ calls: [], text: answer })
    const native = await setup([{ text: answer }], {}, { tool_call: false, toolCalling: "native" })
    expect(await native.ask()).toEqual({ calls: [], text: answer })
    expect(native.offered()).toEqual([true])
  })

  test("uses the configured dialect", async () => {
    const { server, ask } = await setup(
      [{ text: '[TOOL_CALLS]read[ARGS]{"filePath": "a"}' }],
      {},
      { toolCalling: "synthetic", toolDialect: "mistral" },
    )
    expect(await ask()).toEqual(found)
    expect(JSON.stringify(server.requests[0]?.body.messages)).toContain("[TOOL_CALLS]")
  })

  test("reject: sends nothing and names the config key", async () => {
    const own = await setup([], {}, { toolCalling: "reject" })
    await expect(own.ask()).rejects.toMatchObject({
      code: "model.tools-rejected",
      message: expect.stringMatching(/provider\.s\.models\.m\.toolCalling.*"synthetic"/),
    })
    expect(own.server.requests).toHaveLength(0)
    const inherited = await setup([{ text: "Hi." }], { toolCalling: "reject" })
    await expect(inherited.ask()).rejects.toThrow(/Set provider\.s\.toolCalling to/)
    expect(await inherited.ask(undefined, [])).toEqual({ calls: [], text: "Hi." })
  })

  test("ignore: removes the tools", async () => {
    const { server, ask, offered } = await setup([{ text: answer }], {}, { toolCalling: "ignore" })
    expect(await ask()).toEqual({ calls: [], text: answer })
    expect(offered()).toEqual([false])
    expect(JSON.stringify(server.requests[0]?.body.messages)).not.toContain("Reads a file")
  })
})

describe("tool policy auto", () => {
  test("switches to synthetic in the same step after a refusal and stores it", async () => {
    const { ask, offered, data, file } = await setup([
      noTools,
      { text: answer },
      { text: answer },
      { text: answer },
    ])
    const memory = openToolSupport(data)
    expect(await ask(memory)).toEqual(found)
    expect(await ask(memory)).toEqual(found)
    // A new process reads what the last one learned.
    expect(await ask()).toEqual(found)
    expect(offered()).toEqual([true, false, false, false])
    expect(JSON.parse(await readFile(file, "utf8")).refused["s/m"].reason).toContain("does not support tools")
  })

  test("sends tools again after forget", async () => {
    const { ask, offered, data } = await setup([noTools, { text: answer }, { text: answer }])
    await ask()
    expect(openToolSupport(data).forget("s/other")).toEqual([])
    expect(openToolSupport(data).forget("s/m")).toEqual(["s/m"])
    expect(await ask()).toEqual({ calls: [], text: answer })
    expect(offered()).toEqual([true, false, true])
  })

  test("does not treat other errors as refusals", async () => {
    const { ask, server, file } = await setup([{ status: 400, text: "Invalid schema for function 'read'" }])
    await expect(ask()).rejects.toThrow("Invalid schema")
    expect(server.requests).toHaveLength(1)
    await expect(readFile(file)).rejects.toThrow("ENOENT")
  })

  test("treats an invalid file as empty", async () => {
    const { ask, data, file } = await setup([noTools, { text: answer }])
    openToolSupport(data).remember("s/x", "no")
    await writeFile(file, "{")
    expect(await ask()).toEqual(found)
    expect(openToolSupport(data).refused("s/m")).toBeDefined()
  })

  test("keeps entries of other processes", async () => {
    const { data } = await setup([])
    const [one, other] = [openToolSupport(data), openToolSupport(data)]
    expect(one.refused("a/b")).toBeUndefined()
    other.remember("a/b", "no")
    one.remember("c/d", "no")
    expect(openToolSupport(data).forget().sort()).toEqual(["a/b", "c/d"])
  })
})

test("explains how to switch to synthetic in the error of a refusal", async () => {
  const { ask } = await setup([noTools], {}, { toolCalling: "native" })
  await expect(ask()).rejects.toThrow(/set provider\.s\.models\.m\.toolCalling to "synthetic"/)
})

test.each([
  [400, '{"error":{"message":"llama3 does not support tools","type":"api_error"}}'],
  [500, '{"error":{"code":500,"message":"tools param requires --jinja flag","type":"server_error"}}'],
  [500, '{"code":500,"message":"Unsupported param: tools","type":"server_error"}'],
  [400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'],
  [404, '{"error":{"message":"No endpoints found that support tool use. To learn more …","code":404}}'],
  [400, "tools is not supported in this model. For a list of supported models, refer to …"],
  [400, "`tools` is not supported with this model"],
  [400, "`tool calling` is not supported with this model"],
  [400, "Unsupported parameter: 'tools' is not supported with this model."],
  [405, "deepinfra error: Tool calling is not supported for model: some/model"],
  [400, "deepseek-reasoner does not support Function Calling"],
  [400, "Unrecognized request argument supplied: tools"],
  [
    422,
    '{"detail":[{"type":"extra_forbidden","loc":["body","tools"],"msg":"Extra inputs are not permitted"}]}',
  ],
])("%i %s refuses tools", (status, text) => {
  expect(refusesTools(status, text)).toBe(true)
})

test.each([
  [400, "Invalid schema for function 'read': tools is not of type 'object'"],
  [400, "tools.0.custom.input_schema: JSON schema is invalid"],
  [401, "does not support tools"],
  [429, "Too many requests"],
  [400, "This model's maximum context length is 8192 tokens"],
  [undefined, "does not support tools"],
])("%s %s does not", (status, text) => {
  expect(refusesTools(status, text)).toBe(false)
})

test.each([
  [{ object: "error", message: "tool calling is not supported" }, "tool calling is not supported"],
  [{ error: "m does not support tools" }, "m does not support tools"],
  [{ detail: [{ loc: ["body", "tools"], msg: "not permitted", type: "extra_forbidden" }] }, "not permitted"],
])("quotes the server's refusal: %j", (body, words) => {
  const error = { statusCode: 400, message: "Bad Request", responseBody: JSON.stringify(body) }
  expect(toolRefusal(error)).toBe(words)
})

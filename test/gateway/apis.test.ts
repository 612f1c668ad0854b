import { createAnthropic } from "@ai-sdk/anthropic"
import { createOpenAI } from "@ai-sdk/openai"
import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Content,
  LanguageModelV4FunctionTool,
} from "@ai-sdk/provider"
import { describe, expect, test } from "vitest"
import type { GatewayOptions } from "../../src/gateway/server.ts"
import type { Script } from "../../src/testing/model-server.ts"
import { called, lastBody, setUp } from "./start-gateway.ts"

type Prompt = LanguageModelV4CallOptions["prompt"]

/** The APIs, each with a client that does not know the gateway. */
const apis: Record<string, (baseURL: string) => LanguageModelV4> = {
  "chat completions": (baseURL) => createOpenAI({ baseURL, apiKey: "client-key" }).chat("m"),
  responses: (baseURL) => createOpenAI({ baseURL, apiKey: "client-key" }).responses("m"),
  messages: (baseURL) => createAnthropic({ baseURL, apiKey: "client-key" })("m"),
}

const tools: LanguageModelV4FunctionTool[] = ["read", "write"].map((name) => ({
  type: "function",
  name,
  description: `To ${name} a file.`,
  inputSchema: { type: "object", properties: { path: { type: "string" } }, required: ["path"] },
}))

const prompt: Prompt = [
  { role: "system", content: "Be brief." },
  { role: "user", content: [{ type: "text", text: "Go." }] },
]

const pixel =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
const image = { type: "file" as const, mediaType: "image/png", data: { type: "data" as const, data: pixel } }

/** Two calls and their results. The second call failed. */
const history: Prompt = [
  ...prompt,
  {
    role: "assistant",
    content: [
      { type: "text", text: "I look." },
      { type: "tool-call", toolCallId: "c1", toolName: "read", input: { path: "a" } },
      { type: "tool-call", toolCallId: "c2", toolName: "read", input: { path: "b" } },
    ],
  },
  {
    role: "tool",
    content: [
      {
        type: "tool-result",
        toolCallId: "c1",
        toolName: "read",
        output: { type: "text", value: "A's text" },
      },
      {
        type: "tool-result",
        toolCallId: "c2",
        toolName: "read",
        output: { type: "error-text", value: "No file b." },
      },
    ],
  },
  { role: "user", content: [{ type: "text", text: "And now?" }] },
]

/** An answer as a client reads it. */
interface Read {
  text: string
  reasoning: string
  calls: { name: string; input: unknown }[]
  finish: string
  tokens: (number | undefined)[]
}

function readContent(content: readonly LanguageModelV4Content[]): Pick<Read, "text" | "reasoning" | "calls"> {
  const textOf = (type: string) =>
    content.map((part) => (part.type === type && "text" in part ? part.text : "")).join("")
  const calls = content.flatMap((part) =>
    part.type === "tool-call" ? [{ name: part.toolName, input: JSON.parse(part.input) as unknown }] : [],
  )
  return { text: textOf("text").trim(), reasoning: textOf("reasoning"), calls }
}

async function whole(model: LanguageModelV4, call: LanguageModelV4CallOptions): Promise<Read> {
  const { content, finishReason, usage } = await model.doGenerate(call)
  const tokens = [usage.inputTokens.total, usage.outputTokens.total, usage.inputTokens.cacheRead]
  return { ...readContent(content), finish: finishReason.unified, tokens }
}

async function streamed(model: LanguageModelV4, call: LanguageModelV4CallOptions): Promise<Read> {
  const content: LanguageModelV4Content[] = []
  const read: Read = { text: "", reasoning: "", calls: [], finish: "", tokens: [] }
  const { stream } = await model.doStream(call)
  for await (const part of stream) {
    if (part.type === "text-delta") content.push({ type: "text", text: part.delta })
    else if (part.type === "reasoning-delta") content.push({ type: "reasoning", text: part.delta })
    else if (part.type === "tool-call") content.push(part)
    else if (part.type === "error") throw part.error
    else if (part.type === "finish") {
      read.finish = part.finishReason.unified
      const { inputTokens, outputTokens } = part.usage
      read.tokens = [inputTokens.total, outputTokens.total, inputTokens.cacheRead]
    }
  }
  return { ...read, ...readContent(content) }
}

const ways = Object.entries(apis).flatMap(([name, create]) => [
  { name, way: "whole", create, ask: whole },
  { name, way: "streamed", create, ask: streamed },
])

async function start(
  create: (baseURL: string) => LanguageModelV4,
  script: Script,
  options: Partial<GatewayOptions> = {},
) {
  const { gateway, upstream } = await setUp(script, options)
  return { gateway, upstream, model: create(gateway.url) }
}

describe.each(ways)("gateway: $name, $way", ({ name, create, ask }) => {
  test("returns text, calls, the finish reason and the tokens", async () => {
    const { model, upstream } = await start(create, [
      {
        text: `Now.\n${called("a")}\n${called("b", "write")}`,
        usage: { input: 11, output: 7, cached: 4 },
        pieceSize: 5,
      },
    ])
    expect(await ask(model, { prompt, tools })).toEqual({
      text: "Now.",
      reasoning: "",
      calls: [
        { name: "read", input: { path: "a" } },
        { name: "write", input: { path: "b" } },
      ],
      finish: "tool-calls",
      tokens: [11, 7, 4],
    })
    const { messages: sent, ...rest } = lastBody(upstream)
    expect(rest).not.toHaveProperty("tools")
    expect(sent.map(({ role }) => role)).toEqual(["system", "user"])
    expect(JSON.stringify(sent)).toMatch(/Be brief\..*To read a file\..*Go\./)
    expect(upstream.requests[0]?.headers.authorization).toBe("Bearer client-key")
  })

  test("returns an answer without calls", async () => {
    const { model } = await start(create, [{ text: "Hello.", pieceSize: 2 }])
    expect(await ask(model, { prompt, tools })).toMatchObject({ text: "Hello.", calls: [], finish: "stop" })
  })

  test("sends calls, results and failed results of the history as text", async () => {
    const { model, upstream } = await start(create, [{ text: "Done." }])
    expect(await ask(model, { prompt: history, tools })).toMatchObject({ text: "Done." })
    const { messages: sent } = lastBody(upstream)
    expect(sent.map(({ role }) => role)).toEqual(["system", "user", "assistant", "user"])
    expect(sent[2]?.content).toMatch(/I look\..*"path":\s*"a".*"path":\s*"b"/s)
    expect(JSON.stringify(sent[3])).toMatch(/A's text.*No file b\..*And now\?/)
  })

  test("sends calls and results natively to an upstream with tools", async () => {
    const calls = [{ id: "n1", name: "write", arguments: { path: "c" } }]
    const { model, upstream } = await start(create, [{ text: "So.", calls, pieceSize: 3 }], {
      policy: "native",
    })
    expect(await ask(model, { prompt: history, tools })).toMatchObject({
      text: "So.",
      calls: [{ name: "write", input: { path: "c" } }],
      finish: "tool-calls",
    })
    const { messages: sent, tools: offered } = lastBody(upstream)
    expect(offered?.map((tool) => tool.function.name)).toEqual(["read", "write"])
    expect(sent).toMatchObject([
      { role: "system", content: "Be brief." },
      { role: "user" },
      { role: "assistant", content: "I look.", tool_calls: [{ id: "c1" }, { id: "c2" }] },
      { role: "tool", tool_call_id: "c1", content: "A's text" },
      { role: "tool", tool_call_id: "c2", content: expect.stringContaining("No file b.") },
      { role: "user" },
    ])
  })

  test("switches to text after the upstream refused tools, for all APIs", async () => {
    const { gateway, upstream, model } = await start(
      create,
      ({ body }) =>
        body.tools ? { status: 400, text: "registry/m does not support tools" } : { text: called("a") },
      { policy: "auto" },
    )
    for (const other of [model, ...Object.values(apis).map((open) => open(gateway.url))])
      expect((await ask(other, { prompt, tools })).calls).toHaveLength(1)
    expect(upstream.requests.map(({ body }) => body.tools !== undefined)).toEqual([
      true,
      false,
      false,
      false,
      false,
    ])
  })

  test.each(["synthetic", "native"] as const)("sends images to the upstream (%s)", async (policy) => {
    const { model, upstream } = await start(create, [{ text: "A photo." }], { policy })
    await ask(model, {
      prompt: [{ role: "user", content: [{ type: "text", text: "What is it?" }, image] }],
      tools,
    })
    expect(JSON.stringify(lastBody(upstream).messages)).toContain(`data:image/png;base64,${pixel}`)
  })

  test("returns reasoning if the client reads it", async () => {
    const { model } = await start(create, [{ reasoning: "Hm. Well.", text: "Yes.", pieceSize: 4 }])
    const wanted = { anthropic: { thinking: { type: "enabled", budgetTokens: 1_024 } } }
    const { text, reasoning } = await ask(model, { prompt, tools, providerOptions: wanted })
    // OpenAI's chat completions have no field for it, and its client ignores the field of other servers.
    expect([text, reasoning]).toEqual(["Yes.", name === "chat completions" ? "" : "Hm. Well."])
  })

  test("reports an answer that the output limit truncated", async () => {
    const { model } = await start(create, [{ text: "Half", finish: "length" }])
    expect(await ask(model, { prompt, tools })).toMatchObject({ text: "Half", finish: "length" })
  })

  test("asks again for a required call and offers no call if none is allowed", async () => {
    const { model, upstream } = await start(create, [
      { text: "I could." },
      { text: called("a") },
      { text: called("b") },
    ])
    expect((await ask(model, { prompt, tools, toolChoice: { type: "required" } })).calls).toHaveLength(1)
    expect(upstream.requests).toHaveLength(2)
    expect((await ask(model, { prompt, tools, toolChoice: { type: "none" } })).calls).toHaveLength(0)
  })

  test("requires a named tool", async () => {
    const { model, upstream } = await start(create, [{ text: called("a", "write") }])
    const toolChoice = { type: "tool" as const, toolName: "write" }
    expect((await ask(model, { prompt, tools, toolChoice })).calls).toHaveLength(1)
    expect(JSON.stringify(lastBody(upstream).messages)).toContain("must contain a call to write")
  })

  test("forwards parameters that are unrelated to tools", async () => {
    const { model, upstream } = await start(create, [{ text: "Hi." }])
    await ask(model, { prompt, tools, maxOutputTokens: 50, temperature: 0.25 })
    expect(lastBody(upstream)).toMatchObject({ model: "m", max_tokens: 50, temperature: 0.25 })
  })

  test.each([
    [400, "Bad field."],
    [401, "Wrong key."],
    [429, "Slow down."],
    [500, "Broken."],
  ])("keeps the status %i and the message of the upstream", async (status, text) => {
    const { model } = await start(create, [{ status, text, headers: { "retry-after": "7" } }])
    await expect(ask(model, { prompt, tools })).rejects.toMatchObject({
      statusCode: status,
      message: expect.stringContaining(text),
      responseHeaders: { "retry-after": "7" },
    })
  })

  test("reports a request that is too long with the message that clients of the API recognize", async () => {
    const text = "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens."
    const { model } = await start(create, [{ status: 400, text }])
    const error: unknown = await ask(model, { prompt, tools }).catch((thrown: unknown) => thrown)
    const words = name === "messages" ? "prompt is too long: This model" : '"code":"context_length_exceeded"'
    expect(error).toMatchObject({ statusCode: 400, responseBody: expect.stringContaining(words) })
  })

  test.each(["cut", "no-finish", "garbage"] as const)(
    "fails if the upstream's answer is %s",
    async (fault) => {
      const { model } = await start(create, [{ text: "Some words in many pieces.", pieceSize: 3, fault }])
      await expect(ask(model, { prompt, tools })).rejects.toThrow()
    },
  )

  test("refuses tools with the policy reject", async () => {
    const { model, upstream } = await start(create, [{ text: "Hi." }], { policy: "reject" })
    await expect(ask(model, { prompt, tools })).rejects.toMatchObject({ statusCode: 400 })
    expect(upstream.requests).toHaveLength(0)
    expect(await ask(model, { prompt })).toMatchObject({ text: "Hi." })
  })

  test("sends no tools with the policy ignore", async () => {
    const { model, upstream } = await start(create, [{ text: "In words." }], { policy: "ignore" })
    expect(await ask(model, { prompt: history, tools })).toMatchObject({ text: "In words.", calls: [] })
    expect(JSON.stringify(lastBody(upstream))).not.toContain("To read a file")
  })

  test("accepts only the gateway's key if one is set", async () => {
    const { gateway, model, upstream } = await start(create, [{ text: "Hi." }], { key: "sesame" })
    await expect(ask(model, { prompt })).rejects.toMatchObject({ statusCode: 401 })
    const known = name === "messages" ? anthropicWith(gateway.url) : openaiWith(gateway.url, name)
    expect(await ask(known, { prompt })).toMatchObject({ text: "Hi." })
    expect(JSON.stringify(upstream.requests)).not.toContain("sesame")
  })
})

function openaiWith(baseURL: string, api: string): LanguageModelV4 {
  const provider = createOpenAI({ baseURL, apiKey: "sesame" })
  return api === "responses" ? provider.responses("m") : provider.chat("m")
}

function anthropicWith(baseURL: string): LanguageModelV4 {
  return createAnthropic({ baseURL, apiKey: "sesame" })("m")
}

import { describe, expect, onTestFinished, test } from "vitest"
import type { ProviderConfig } from "../../src/model/model.ts"
import { createModels } from "../../src/model/providers.ts"
import { streamStep } from "../../src/model/stream.ts"
import { type Script, startModelServer } from "../../src/testing/model-server.ts"
import { startEngine } from "../session/engine.ts"
import { run } from "../session/run.ts"

describe("the API of an OpenAI provider", () => {
  test.each<[string, ProviderConfig, Record<string, string>, string]>([
    ["responses at OpenAI", {}, {}, "https://api.openai.com/v1/responses"],
    [
      "responses in a region of OpenAI",
      { options: { baseURL: "https://eu.api.openai.com/v1" } },
      {},
      "https://eu.api.openai.com/v1/responses",
    ],
    [
      "chat completions at another server",
      { options: { baseURL: "https://models.test/v1" } },
      {},
      "https://models.test/v1/chat/completions",
    ],
    [
      "chat completions at a host whose name only contains OpenAI's",
      { options: { baseURL: "https://api.openai.com.test/v1" } },
      {},
      "https://api.openai.com.test/v1/chat/completions",
    ],
    [
      "chat completions at the server of OPENAI_BASE_URL",
      {},
      { OPENAI_BASE_URL: "https://models.test/v1" },
      "https://models.test/v1/chat/completions",
    ],
    ["chat completions by config", { api: "chat" }, {}, "https://api.openai.com/v1/chat/completions"],
    [
      "responses by config",
      { api: "responses", options: { baseURL: "https://models.test/v1" } },
      {},
      "https://models.test/v1/responses",
    ],
  ])("is %s", async (_, config, environment, url) => {
    expect(await requestedURL({ openai: config }, environment)).toBe(url)
  })

  test("is chosen by address for a provider with another name", async () => {
    const work = { npm: "@ai-sdk/openai" }
    expect(await requestedURL({ work }, {}, "work")).toBe("https://api.openai.com/v1/responses")
  })

  test("cannot be set for another package", async () => {
    const local = { api: "responses", options: { baseURL: "http://127.0.0.1:1/v1" } } as const
    await expect(requestedURL({ local }, {}, "local")).rejects.toThrow('only for "npm": "@ai-sdk/openai"')
  })
})

async function requestedURL(
  config: Record<string, ProviderConfig>,
  environment: Record<string, string>,
  providerID = "openai",
): Promise<string | undefined> {
  let asked: string | undefined
  const models = createModels({
    config,
    environment,
    credentials: { key: async () => "k" },
    fetch: async (input) => {
      asked = String(input)
      return new Response("{}", { status: 400 })
    },
  })
  const model = await models.get({ providerID, modelID: "gpt-5" })
  const language = await model.language()
  const signal = new AbortController().signal
  const prompt = [{ role: "user" as const, content: [{ type: "text" as const, text: "Hi." }] }]
  await expect(streamStep({ language, info: model.info, prompt, tools: [], signal }).next()).rejects.toThrow()
  return asked
}

/** Starts an engine whose model speaks the responses API. */
async function startResponses(script: Script) {
  const server = await startModelServer({ script })
  onTestFinished(server.close)
  const providers = { openai: { api: "responses" as const, options: { baseURL: server.url, apiKey: "k" } } }
  const engine = await startEngine([], { model: "openai/gpt-5", providers, files: { "a.txt": "one\n" } })
  onTestFinished(() => engine[Symbol.asyncDispose]())
  return { server, engine }
}

describe("the responses API", () => {
  test.each([
    ["a summary", "I look first.", [{ type: "summary_text", text: "I look first." }]],
    ["no text", "", []],
  ])("gets calls, results and reasoning with %s back", async (_, reasoning, summary) => {
    const read = { name: "read", arguments: { filePath: "a.txt" } }
    const { engine, server } = await startResponses([
      {
        reasoning,
        text: "Reading.",
        calls: [
          { ...read, id: "c1" },
          { ...read, id: "c2" },
        ],
        pieceSize: 4,
      },
      { text: "It says one.", usage: { input: 90, output: 30, cached: 40, reasoning: 10 } },
    ])
    const { end } = await run(engine, { text: "What does a.txt say?" })
    expect(end).toMatchObject({ status: "completed", text: "It says one." })
    expect(end.usage.cacheRead).toBe(40)
    expect(server.requests.map(({ path }) => path)).toEqual(["/v1/responses", "/v1/responses"])
    const [first = { messages: [] }, second] = server.requests.map(({ body }) => body)
    expect(first).toMatchObject({ store: false, include: ["reasoning.encrypted_content"] })
    expect(first.tools?.every((entry) => entry.type === "function")).toBe(true)
    const input = second?.input as { type?: string; role?: string }[]
    expect(input.slice(0, (first.input as unknown[]).length)).toEqual(first.input)
    expect(input.slice((first.input as unknown[]).length)).toMatchObject([
      { type: "reasoning", id: "rs_0", encrypted_content: "sealed-0", summary },
      { role: "assistant", content: "Reading." },
      { type: "function_call", call_id: "c1", name: "read", arguments: '{"filePath":"a.txt"}' },
      { type: "function_call", call_id: "c2", name: "read" },
      { type: "function_call_output", call_id: "c1", output: expect.stringContaining("one") },
      { type: "function_call_output", call_id: "c2" },
    ])
    expect(JSON.stringify(input)).not.toContain("item_reference")
  })

  test("reports an answer that the output limit truncated", async () => {
    const { engine } = await startResponses([{ text: "Half", finish: "length" }])
    const { events } = await run(engine)
    expect(JSON.stringify(events)).toContain('"reason":"length"')
  })

  test.each([
    [
      "error",
      { error: { type: "invalid_request_error", code: "context_length_exceeded", message: "Too long." } },
      { kind: "context-overflow", retryable: false, message: expect.stringContaining("Too long.") },
    ],
    [
      "response.failed",
      { response: { id: "r", error: { code: "server_error", message: "The server had an error." } } },
      { retryable: true, message: expect.stringContaining("The server had an error.") },
    ],
  ])("fails with the message of the event %s", async (type, event, expected) => {
    const data = JSON.stringify({ type, sequence_number: 0, ...event })
    const model = await createModels({
      config: { openai: { api: "responses" } },
      environment: {},
      credentials: { key: async () => "k" },
      fetch: async () =>
        new Response(`event: ${type}\ndata: ${data}\n\n`, {
          headers: { "content-type": "text/event-stream" },
        }),
    }).get({ providerID: "openai", modelID: "gpt-5" })
    const request = { language: await model.language(), info: model.info, prompt: [], tools: [] }
    const events = streamStep({ ...request, signal: new AbortController().signal })
    await expect(events.next()).rejects.toMatchObject(expected)
  })
})

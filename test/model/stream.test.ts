import type { LanguageModelV4StreamPart } from "@ai-sdk/provider"
import { afterEach, describe, expect, test } from "vitest"
import { ProviderError } from "../../src/model/errors.ts"
import { toPrompt } from "../../src/model/history-to-prompt.ts"
import { parseModelName } from "../../src/model/model.ts"
import { createModels } from "../../src/model/providers.ts"
import { type StepEvent, type StepRequest, streamStep } from "../../src/model/stream.ts"
import { AbortedError } from "../../src/util/abort.ts"
import { assistant, call, completed, failed, user } from "./history.ts"
import { chunk, sendEvents, shortAnswer, startServer, type TestServer } from "./server.ts"

const servers: TestServer[] = []

afterEach(async () => {
  for (const server of servers.splice(0)) await server[Symbol.asyncDispose]()
})

async function serve(...args: Parameters<typeof startServer>): Promise<TestServer> {
  const server = await startServer(...args)
  servers.push(server)
  return server
}

const bash = {
  name: "bash",
  description: "Execute bash commands...",
  inputSchema: {
    type: "object",
    properties: { command: { type: "string" }, description: { type: "string" } },
    required: ["command", "description"],
    additionalProperties: false,
  },
}

/** Returns the model `test/m` at this address, opened like any configured model. */
async function modelAt(origin: string, options: object = {}) {
  const models = createModels({
    config: { test: { options: { baseURL: `${origin}/v1`, apiKey: "k", ...options } } },
    credentials: { key: async () => undefined },
    environment: {},
    // Otherwise, the time of arrival would decide which events are joined.
    keepEvents: true,
  })
  return models.get(parseModelName("test/m"))
}

async function step(origin: string, request: Partial<StepRequest> = {}): Promise<StepEvent[]> {
  const model = await modelAt(origin)
  const events: StepEvent[] = []
  const all = streamStep({
    language: await model.language(),
    info: model.info,
    prompt: toPrompt({ system: [], messages: [user("Check if git is installed")], model: model.info }),
    tools: [bash],
    signal: new AbortController().signal,
    ...request,
  })
  for await (const event of all) events.push(event)
  return events
}

async function failure(promise: Promise<unknown>): Promise<ProviderError> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (error instanceof ProviderError) return error
  throw new Error("No ProviderError was thrown.", { cause: error })
}

describe("the wire format", () => {
  test("joins streamed arguments to one call", async () => {
    const args = (text: string) => chunk({ tool_calls: [{ index: 0, function: { arguments: text } }] })
    const server = await serve((response) =>
      sendEvents(response, [
        chunk({
          role: "assistant",
          content: null,
          tool_calls: [
            { index: 0, id: "call_bash_002", type: "function", function: { name: "bash", arguments: "" } },
          ],
        }),
        args('{"command"'),
        args(':"git --version"'),
        args(',"description":"Check'),
        args(' git version"}'),
        chunk({}, "tool_calls"),
        "[DONE]",
      ]),
    )
    const events = await step(server.origin)
    expect(events).toEqual([
      { type: "tool-start", callID: "call_bash_002", tool: "bash" },
      { type: "tool-delta", callID: "call_bash_002", delta: '{"command"' },
      { type: "tool-delta", callID: "call_bash_002", delta: ':"git --version"' },
      { type: "tool-delta", callID: "call_bash_002", delta: ',"description":"Check' },
      { type: "tool-delta", callID: "call_bash_002", delta: ' git version"}' },
      {
        type: "tool-call",
        callID: "call_bash_002",
        tool: "bash",
        input: '{"command":"git --version","description":"Check git version"}',
      },
      {
        type: "finish",
        reason: "tool-calls",
        tokens: { input: 0, output: 0, reasoning: 0, cache: { read: 0, write: 0 } },
      },
    ])
  })

  test("sends tools, calls and results in a follow-up request", async () => {
    const server = await serve((response) => sendEvents(response, shortAnswer))
    const model = await modelAt(server.origin)
    const input = { command: "ls -la", description: "List files" }
    const messages = [
      user("List the files"),
      assistant(
        call("bash", "call_1", completed(input, "total 48")),
        call("read", "call_2", failed({ filePath: "nonexistent.txt" }, "File not found: /w/nonexistent.txt")),
      ),
    ]
    await step(server.origin, {
      prompt: toPrompt({ system: ["You are Tackle."], messages, model: model.info }),
      temperature: 0.55,
      maxOutputTokens: 100,
      toolChoice: "none",
    })
    const { url, headers, body } = server.received[0] ?? {}
    expect(url).toBe("/v1/chat/completions")
    expect(headers?.authorization).toBe("Bearer k")
    expect(body).toEqual({
      model: "m",
      temperature: 0.55,
      max_tokens: 100,
      stream: true,
      stream_options: { include_usage: true },
      messages: [
        { role: "system", content: "You are Tackle." },
        { role: "user", content: "List the files" },
        {
          role: "assistant",
          content: null,
          tool_calls: [
            {
              id: "call_1",
              type: "function",
              function: { name: "bash", arguments: '{"command":"ls -la","description":"List files"}' },
            },
            {
              id: "call_2",
              type: "function",
              function: { name: "read", arguments: '{"filePath":"nonexistent.txt"}' },
            },
          ],
        },
        { role: "tool", tool_call_id: "call_1", content: "total 48" },
        { role: "tool", tool_call_id: "call_2", content: "Error: File not found: /w/nonexistent.txt" },
      ],
      tools: [
        {
          type: "function",
          function: { name: "bash", description: bash.description, parameters: bash.inputSchema },
        },
      ],
      tool_choice: "none",
    })
  })

  test("reads text and tokens", async () => {
    const server = await serve((response) => sendEvents(response, shortAnswer))
    expect(await step(server.origin)).toMatchObject([
      { type: "text-start" },
      { type: "text-delta", delta: "Hello" },
      { type: "text-delta", delta: " world" },
      { type: "text-end" },
      {
        type: "finish",
        reason: "stop",
        tokens: { input: 8, output: 3, reasoning: 0, cache: { read: 4, write: 0 } },
      },
    ])
  })

  test("sends the configured options and model id", async () => {
    const server = await serve((response) => sendEvents(response, shortAnswer))
    const models = createModels({
      config: {
        test: {
          options: { baseURL: `${server.origin}/v1`, headers: { "x-team": "blue" } },
          models: { short: { id: "a-long-name", options: { top_k: 5 } } },
        },
      },
      credentials: { key: async () => "from-file" },
      environment: {},
    })
    const model = await models.get(parseModelName("test/short"))
    await step("", { language: await model.language() })
    expect(server.received[0]?.body).toMatchObject({ model: "a-long-name", top_k: 5 })
    expect(server.received[0]?.headers).toMatchObject({ "x-team": "blue", authorization: "Bearer from-file" })
  })
})

describe("stream errors", () => {
  test("401 names model, host, status and where the key goes, and is not retried", async () => {
    const server = await serve((response) => {
      response.writeHead(401, { "content-type": "application/json" })
      response.end(JSON.stringify({ error: { message: "Incorrect API key", type: "invalid_request_error" } }))
    })
    const error = await failure(step(server.origin))
    expect(error).toMatchObject({ kind: "auth", status: 401, retryable: false })
    expect(error.message).toContain("test/m")
    expect(error.message).toContain(`127.0.0.1:${server.port} returned 401: Incorrect API key.`)
    expect(error.message).toContain("provider.test.options.apiKey")
  })

  test("429 says how long to wait", async () => {
    const server = await serve((response) => {
      response.writeHead(429, { "retry-after": "7" })
      response.end(JSON.stringify({ error: { message: "Slow down" } }))
    })
    const error = await failure(step(server.origin))
    expect(error).toMatchObject({ kind: "rate-limit", status: 429, retryable: true, retryAfterMs: 7000 })
    expect(error.message).toContain("wait 7 s")
  })

  test("429 for an empty account is not retried", async () => {
    const server = await serve((response) => {
      response.writeHead(429)
      response.end(JSON.stringify({ error: { message: "No quota", code: "insufficient_quota" } }))
    })
    expect(await failure(step(server.origin))).toMatchObject({ kind: "rate-limit", retryable: false })
  })

  test.each([
    [500, "unknown", true],
    [502, "unknown", true],
    [503, "overloaded", true],
    [504, "timeout", true],
    [400, "unknown", false],
    [404, "unknown", false],
    [413, "context-overflow", false],
  ])("status %i is %s", async (status, kind, retryable) => {
    const server = await serve((response) => {
      response.writeHead(status).end(JSON.stringify({ error: { message: "because" } }))
    })
    const error = await failure(step(server.origin))
    expect(error).toMatchObject({ status, kind, retryable })
    expect(error.message).toContain("because")
  })

  test.each([
    {
      error: {
        message: "This model's maximum context length is 8192 tokens.",
        code: "context_length_exceeded",
      },
    },
    { error: { message: "the request exceeds the available context size. try increasing it" } },
    { detail: "prompt is too long: 210000 tokens > 200000 maximum" },
    ...[
      "Invalid request: Your request exceeded model token limit: 131072 (requested: 150000)",
      "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
      "Prompt exceeds max length",
      "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 10000 `inputs` tokens and 512 `max_new_tokens`",
      "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]",
      "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
      "prompt token count of 300000 exceeds the limit of 128000",
      "The number of tokens in the conversation is larger than 32000.",
    ].map((message) => ({ error: { message } })),
  ])("recognizes an overlong prompt: %j", async (body) => {
    const server = await serve((response) => void response.writeHead(400).end(JSON.stringify(body)))
    expect(await failure(step(server.origin))).toMatchObject({ kind: "context-overflow", retryable: false })
  })

  test.each([
    "max_tokens is too large: 100000. This model supports at most 4096 completion tokens.",
    "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens",
    "`max_tokens` must be greater than `thinking.budget_tokens`",
    "Your API token has exceeded its limit.",
    "Invalid 'tools[0].function.description': string too long. Expected a maximum length of 1024.",
    "messages.0.content.1: image exceeds 5 MB maximum",
    "Invalid 'prompt_cache_key': string too long.",
  ])("does not take another limit for an overlong prompt: %s", async (message) => {
    const server = await serve(
      (response) => void response.writeHead(400).end(JSON.stringify({ error: { message } })),
    )
    expect(await failure(step(server.origin))).toMatchObject({ kind: "unknown" })
  })

  test("an HTML error page becomes one line", async () => {
    const page = `<!DOCTYPE html>\n<html><head><title>502 Bad\n Gateway</title></head><body>${"<p>x</p>\n".repeat(5000)}</body></html>`
    const server = await serve((response) => void response.writeHead(502).end(page))
    const error = await failure(step(server.origin))
    expect(error.message).toContain("502 Bad Gateway")
    expect(error.message).not.toContain("<")
    expect(error.message.length).toBeLessThan(300)
  })

  test("a web page instead of an answer is reported with a hint to check baseURL", async () => {
    const server = await serve((response) => {
      response.writeHead(200, { "content-type": "text/html" }).end("<html>hello</html>")
    })
    const error = await failure(step(server.origin))
    expect(error).toMatchObject({ kind: "bad-response", retryable: false })
    expect(error.message).toContain("baseURL")
  })

  test("a stream without an end is retryable", async () => {
    const server = await serve((response) => sendEvents(response, [chunk({ content: "Hel" })]))
    expect(await failure(step(server.origin))).toMatchObject({ kind: "bad-response", retryable: true })
  })

  test("a connection that breaks in mid-stream is retryable", async () => {
    const server = await serve((response) => {
      response.writeHead(200, { "content-type": "text/event-stream" })
      response.write(`data: ${JSON.stringify(chunk({ content: "Hel" }))}\n\n`, () => response.destroy())
    })
    expect(await failure(step(server.origin))).toMatchObject({ kind: "network", retryable: true })
  })

  test("garbage is retryable and not repeated at length", async () => {
    const server = await serve((response) =>
      sendEvents(response, [chunk({ content: "a" }), `{broken ${"x".repeat(5000)}`, chunk({}, "stop")]),
    )
    const error = await failure(step(server.origin))
    expect(error).toMatchObject({ kind: "bad-response", retryable: true })
    expect(error.message.length).toBeLessThan(600)
  })

  test("an error in mid-stream keeps its message", async () => {
    const server = await serve((response) =>
      sendEvents(response, [
        chunk({ content: "a" }),
        { error: { message: "The engine is overloaded", type: "overloaded_error" } },
      ]),
    )
    const error = await failure(step(server.origin))
    expect(error).toMatchObject({ kind: "overloaded", retryable: true })
    expect(error.message).toContain("The engine is overloaded")
  })

  test("silence before the first byte ends the step and closes the connection", async () => {
    const server = await serve(() => {})
    const error = await failure(step(server.origin, { limits: { firstByteMs: 50 } }))
    expect(error).toMatchObject({ kind: "timeout", retryable: true })
    await server.abandoned
  })

  test.each([
    ["comments", ": keep-alive\n\n"],
    ["empty events", "data: {}\n\n".replace("{}", JSON.stringify({ choices: [] }))],
    ["empty texts", `data: ${JSON.stringify(chunk({ content: "" }))}\n\n`],
    ["empty reasoning", `data: ${JSON.stringify(chunk({ reasoning_content: "" }))}\n\n`],
    ["empty roles", `data: ${JSON.stringify(chunk({ role: "assistant" }))}\n\n`],
    [
      "empty arguments",
      `data: ${JSON.stringify(chunk({ tool_calls: [{ index: 0, id: "c", function: { name: "bash", arguments: "" } }] }))}\n\n`,
    ],
  ])("%s do not keep a stream alive", async (_, text) => {
    const server = await serve((response) => {
      response.writeHead(200, { "content-type": "text/event-stream" })
      response.write(`data: ${JSON.stringify(chunk({ content: "Hel" }))}\n\n`)
      const timer = setInterval(() => response.write(text), 5)
      response.on("close", () => clearInterval(timer))
    })
    const error = await failure(step(server.origin, { limits: { idleMs: 200 } }))
    expect(error).toMatchObject({ kind: "timeout", retryable: true })
    await server.abandoned
  })

  test("headers do not count as the first byte", async () => {
    const server = await serve((response) => {
      response.writeHead(200, { "content-type": "text/event-stream" })
      response.write(": keep-alive\n\n")
    })
    const error = await failure(step(server.origin, { limits: { firstByteMs: 50, idleMs: 60_000 } }))
    expect(error.message).toContain(
      "0.05 s. If it needs more time, increase timeout.firstByteSeconds in the config",
    )
  })

  test("silence within the answer ends the step", async () => {
    const server = await serve((response) => {
      response.writeHead(200, { "content-type": "text/event-stream" })
      response.write(`data: ${JSON.stringify(chunk({ content: "Hel" }))}\n\n`)
    })
    const error = await failure(step(server.origin, { limits: { idleMs: 50 } }))
    expect(error).toMatchObject({ kind: "timeout", retryable: true })
    expect(error.message).toContain("increase timeout.idleSeconds in the config")
    await server.abandoned
  })

  test("time that the reader takes does not count as silence", async () => {
    const server = await serve(async (response) => {
      response.writeHead(200, { "content-type": "text/event-stream" })
      response.write(`data: ${JSON.stringify(chunk({ content: "Hel" }))}\n\n`)
      await new Promise((resolve) => setTimeout(resolve, 40))
      response.end(`data: ${JSON.stringify(chunk({}, "stop"))}\n\n`)
    })
    const model = await modelAt(server.origin)
    const types: string[] = []
    const events = streamStep({
      language: await model.language(),
      prompt: [{ role: "user", content: [{ type: "text", text: "hi" }] }],
      tools: [],
      signal: new AbortController().signal,
      limits: { idleMs: 200 },
    })
    for await (const event of events) {
      types.push(event.type)
      if (event.type === "text-delta") await new Promise((resolve) => setTimeout(resolve, 400))
    }
    expect(types.at(-1)).toBe("finish")
  })

  test("prefers the timeouts of the config to those of the caller", async () => {
    const server = await serve(() => {})
    const model = await modelAt(server.origin, { headerTimeout: 50 })
    const limits = { firstByteMs: 60_000 }
    const error = await failure(step("", { language: await model.language(), info: model.info, limits }))
    expect(error.kind).toBe("timeout")
    expect(error.message).toMatch(/increase provider\.\w+\.options\.headerTimeout in the config/)
  })

  test("applies the limit of the complete answer while the server sends data", async () => {
    const server = await serve((response) => {
      response.writeHead(200, { "content-type": "text/event-stream" })
      const timer = setInterval(
        () => response.write(`data: ${JSON.stringify(chunk({ content: "." }))}\n\n`),
        5,
      )
      response.on("close", () => clearInterval(timer))
    })
    const model = await modelAt(server.origin, { timeout: 100 })
    const error = await failure(step("", { language: await model.language() }))
    expect(error).toMatchObject({ kind: "timeout", retryable: true })
    expect(error.message).toMatch(/after 0\.1 s\. .* increase provider\.test\.options\.timeout in the config/)
    await server.abandoned
  })

  test("applies the limit of the complete answer before the answer begins", async () => {
    const server = await serve(() => {})
    const model = await modelAt(server.origin, { timeout: 50 })
    const error = await failure(step("", { language: await model.language() }))
    expect(error).toMatchObject({ kind: "timeout", retryable: true })
    expect(error.message).toContain("increase provider.test.options.timeout in the config")
  })

  test("a closed local port fails without a retry", async () => {
    const server = await startServer(() => {})
    await server[Symbol.asyncDispose]()
    const error = await failure(step(server.origin))
    expect(error).toMatchObject({ kind: "network", retryable: false })
    expect(error.message).toContain(`127.0.0.1:${server.port}`)
    expect(error.message).toContain("Check that the model server is running.")
  })
})

describe("abort", () => {
  test("before the answer: AbortedError, and the connection is closed", async () => {
    const controller = new AbortController()
    const server = await serve(() => controller.abort())
    await expect(step(server.origin, { signal: controller.signal })).rejects.toBeInstanceOf(AbortedError)
    await server.abandoned
  })

  test("within the answer: AbortedError, and the connection is closed", async () => {
    const controller = new AbortController()
    const server = await serve((response) => {
      response.writeHead(200, { "content-type": "text/event-stream" })
      response.write(`data: ${JSON.stringify(chunk({ content: "Hel" }))}\n\n`)
      setTimeout(() => controller.abort(), 20)
    })
    await expect(step(server.origin, { signal: controller.signal })).rejects.toBeInstanceOf(AbortedError)
    await server.abandoned
  })

  test("before the start: sends nothing", async () => {
    const server = await serve((response) => sendEvents(response, shortAnswer))
    await expect(step(server.origin, { signal: AbortSignal.abort() })).rejects.toBeInstanceOf(AbortedError)
    expect(server.received).toEqual([])
  })

  test("a reader that leaves early closes the connection", async () => {
    const server = await serve((response) => {
      response.writeHead(200, { "content-type": "text/event-stream" })
      response.write(`data: ${JSON.stringify(chunk({ content: "Hel" }))}\n\n`)
    })
    const model = await modelAt(server.origin)
    for await (const event of streamStep({
      language: await model.language(),
      prompt: [{ role: "user", content: [{ type: "text", text: "hi" }] }],
      tools: [],
      signal: new AbortController().signal,
    })) {
      if (event.type === "text-delta") break
    }
    await server.abandoned
  })

  test("ends the step if the provider ignores the signal", async () => {
    const controller = new AbortController()
    const stuck = scripted(new ReadableStream({ pull: () => new Promise(() => {}) }))
    const run = step("", { language: stuck, signal: controller.signal })
    setTimeout(() => controller.abort(), 10)
    await expect(run).rejects.toBeInstanceOf(AbortedError)
  })
})

/** A language model that answers with this stream. */
function scripted(stream: ReadableStream<LanguageModelV4StreamPart>): StepRequest["language"] {
  return {
    specificationVersion: "v4",
    provider: "scripted",
    modelId: "m",
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error("not used")),
    doStream: async () => ({ stream }),
  }
}

const usage = {
  inputTokens: { total: 10, noCache: undefined, cacheRead: 2, cacheWrite: 3 },
  outputTokens: { total: 9, text: undefined, reasoning: 4 },
}

describe("stream parts", () => {
  test("collects a block's metadata, accepts a call without a start and drops provider-executed calls", async () => {
    const stream = ReadableStream.from<LanguageModelV4StreamPart>([
      { type: "stream-start", warnings: [] },
      { type: "reasoning-start", id: "0", providerMetadata: { p: { kind: "x" } } },
      { type: "reasoning-delta", id: "0", delta: "hm" },
      { type: "reasoning-delta", id: "0", delta: "", providerMetadata: { p: { signature: "s" } } },
      { type: "reasoning-end", id: "0" },
      {
        type: "tool-call",
        toolCallId: "c",
        toolName: "bash",
        input: "{}",
        providerMetadata: { p: { a: 1 } },
      },
      { type: "tool-call", toolCallId: "d", toolName: "search", input: "{}", providerExecuted: true },
      { type: "finish", finishReason: { unified: "tool-calls", raw: undefined }, usage },
    ])
    expect(await step("", { language: scripted(stream) })).toMatchObject([
      { type: "reasoning-start", id: "0", metadata: { p: { kind: "x" } } },
      { type: "reasoning-delta", delta: "hm" },
      { type: "reasoning-delta", delta: "" },
      { type: "reasoning-end", id: "0", metadata: { p: { kind: "x", signature: "s" } } },
      { type: "tool-call", callID: "c", tool: "bash", input: "{}", metadata: { p: { a: 1 } } },
      {
        type: "finish",
        reason: "tool-calls",
        tokens: { input: 5, output: 5, reasoning: 4, cache: { read: 2, write: 3 } },
      },
    ])
  })

  test("ends the step if the provider does not close the stream after its finish", async () => {
    const stream = new ReadableStream<LanguageModelV4StreamPart>({
      start: (controller) =>
        controller.enqueue({ type: "finish", finishReason: { unified: "stop", raw: undefined }, usage }),
    })
    expect(await step("", { language: scripted(stream) })).toMatchObject([{ type: "finish", reason: "stop" }])
  })
})

test("ignores token counts that are not numbers", async () => {
  const wrong = {
    inputTokens: { total: "12", noCache: Number.NaN, cacheRead: -1, cacheWrite: null },
    outputTokens: { total: 7, text: {}, reasoning: "3" },
  } as unknown as typeof usage
  const finishes: unknown[] = [wrong, {}, null, undefined].map((usage) => ({
    type: "finish",
    finishReason: { unified: "stop", raw: undefined },
    usage,
  }))
  const noTokens = { input: 0, output: 0, reasoning: 0, cache: { read: 0, write: 0 } }
  const read: unknown[] = []
  for (const finish of finishes) {
    const language = scripted(ReadableStream.from([finish as LanguageModelV4StreamPart]))
    for await (const event of streamStep({
      language,
      prompt: [],
      tools: [],
      signal: new AbortController().signal,
    }))
      read.push(event.type === "finish" ? event.tokens : event)
  }
  expect(read).toEqual([{ ...noTokens, output: 7 }, noTokens, noTokens, noTokens])
})

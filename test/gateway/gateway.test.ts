import { request as httpRequest } from "node:http"
import OpenAI, { APIError } from "openai"
import { afterEach, describe, expect, test } from "vitest"
import { type GatewayOptions, startGateway } from "../../src/gateway/server.ts"
import { httpFetch } from "../../src/model/http-fetch.ts"
import { type ModelServer, type Script, startModelServer } from "../../src/testing/model-server.ts"
import type { Reply } from "../../src/testing/reply.ts"

const cleanups: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

/** An upstream that says what the script tells it, the gateway before it, and OpenAI's client before that. */
async function setUp(script: Script, options: Partial<GatewayOptions> = {}) {
  const upstream = await startModelServer({ script, models: ["m", "other"] })
  cleanups.push(upstream.close)
  return { upstream, ...(await gatewayFor(upstream.url, options)) }
}

async function gatewayFor(upstream: string, options: Partial<GatewayOptions> = {}) {
  const gateway = await startGateway({ upstream, policy: "synthetic", port: 0, fetch: httpFetch, ...options })
  cleanups.push(() => gateway.close())
  const client = new OpenAI({ baseURL: gateway.url, apiKey: "client-key", maxRetries: 0 })
  return { gateway, client }
}

const tools: OpenAI.Chat.Completions.ChatCompletionTool[] = ["read", "write"].map((name) => ({
  type: "function",
  function: {
    name,
    description: `To ${name} a file.`,
    parameters: { type: "object", properties: { path: { type: "string" } }, required: ["path"] },
  },
}))
const messages: OpenAI.Chat.Completions.ChatCompletionMessageParam[] = [{ role: "user", content: "Go." }]

function called(path: string, tool = "read"): string {
  return `<tool_call>\n{"name": "${tool}", "arguments": {"path": "${path}"}}\n</tool_call>`
}

function lastBody(upstream: ModelServer) {
  const last = upstream.requests.at(-1)
  if (last === undefined) throw new Error("The upstream was not asked.")
  return last.body
}

async function failure(promise: PromiseLike<unknown>): Promise<APIError> {
  const error = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  if (error instanceof APIError) return error
  throw new Error(`Not an error of the API: ${String(error)}`)
}

/** A stream's chunks, and the message that the client makes of them. */
async function collect(
  client: OpenAI,
  body: Partial<OpenAI.Chat.Completions.ChatCompletionCreateParamsStreaming>,
) {
  const chunks: OpenAI.Chat.Completions.ChatCompletionChunk[] = []
  const stream = await client.chat.completions.create({ model: "m", messages, tools, ...body, stream: true })
  for await (const chunk of stream) chunks.push(chunk)
  const calls = new Map<number, { id: string; name: string; arguments: string; pieces: number }>()
  let text = ""
  for (const { delta } of chunks.flatMap((chunk) => chunk.choices)) {
    text += delta.content ?? ""
    for (const { index, id, function: named } of delta.tool_calls ?? []) {
      const call = calls.get(index) ?? { id: id ?? "", name: named?.name ?? "", arguments: "", pieces: -1 }
      calls.set(index, {
        ...call,
        arguments: call.arguments + (named?.arguments ?? ""),
        pieces: call.pieces + 1,
      })
    }
  }
  const finish = chunks
    .flatMap(({ choices }) => choices.map((choice) => choice.finish_reason))
    .filter(Boolean)
  return { chunks, text, calls: [...calls.values()], finish }
}

describe("an answer with calls", () => {
  const usage = { input: 11, output: 7 }

  test("whole: calls with ids, no content, the finish reason and usage", async () => {
    const { client, upstream } = await setUp([{ text: `${called("a")}\n${called("b", "write")}`, usage }])
    const answer = await client.chat.completions.create({
      model: "m",
      messages,
      tools,
      temperature: 0.5,
      seed: 3,
    })
    const [choice] = answer.choices
    expect(choice?.finish_reason).toBe("tool_calls")
    expect(choice?.message.content).toBeNull()
    const calls = choice?.message.tool_calls?.map((call) => call.type === "function" && call.function)
    expect(calls).toEqual([
      { name: "read", arguments: '{"path": "a"}' },
      { name: "write", arguments: '{"path": "b"}' },
    ])
    expect(new Set(choice?.message.tool_calls?.map(({ id }) => id)).size).toBe(2)
    expect(answer.usage).toMatchObject({ prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 })
    expect(answer.model).toBe("m")

    const body = lastBody(upstream)
    expect(body).toMatchObject({ model: "m", temperature: 0.5, seed: 3 })
    expect(body).not.toHaveProperty("tools")
    expect(body.stream ?? false).toBe(false)
    expect(body.messages[0]?.content).toContain("To read a file.")
    expect(upstream.requests[0]?.headers.authorization).toBe("Bearer client-key")
  })

  test("streamed: arguments in increments, the same call, the finish reason and usage where it is wanted", async () => {
    const long = "x".repeat(200)
    const script = () => ({ text: `Now.\n${called(long)}\n${called("b")}`, usage, pieceSize: 7 })
    const { client } = await setUp(script)
    const { chunks, text, calls, finish } = await collect(client, { stream_options: { include_usage: true } })
    expect(text.trim()).toBe("Now.")
    expect(calls.map(({ name, arguments: given }) => [name, JSON.parse(given)])).toEqual([
      ["read", { path: long }],
      ["read", { path: "b" }],
    ])
    expect(calls[0]?.pieces).toBeGreaterThan(5)
    expect(finish).toEqual(["tool_calls"])
    expect(chunks[0]?.choices[0]?.delta.role).toBe("assistant")
    expect(new Set(chunks.map(({ id }) => id)).size).toBe(1)
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { prompt_tokens: 11, total_tokens: 18 } })
    const { chunks: unasked } = await collect(client, {})
    expect(unasked.filter((chunk) => chunk.usage)).toEqual([])
  })

  test("only the first call, where the client takes no more", async () => {
    const { client } = await setUp(() => ({ text: `${called("a")}\n${called("b")}` }))
    const { calls } = await collect(client, { parallel_tool_calls: false })
    expect(calls.map((call) => call.arguments)).toEqual(['{"path": "a"}'])
    const answer = await client.chat.completions.create({
      model: "m",
      messages,
      tools,
      parallel_tool_calls: false,
    })
    expect(answer.choices[0]?.message.tool_calls).toHaveLength(1)
  })

  test("a stream of which the upstream makes one answer", async () => {
    const { client } = await setUp([{ text: called("a"), whole: true }])
    const { calls, finish } = await collect(client, {})
    expect(calls.map((call) => call.arguments)).toEqual(['{"path": "a"}'])
    expect(finish).toEqual(["tool_calls"])
  })

  test("an answer in words stays one", async () => {
    const { client } = await setUp(() => ({ text: "Hello." }))
    const answer = await client.chat.completions.create({ model: "m", messages, tools })
    expect(answer.choices[0]).toMatchObject({ finish_reason: "stop", message: { content: "Hello." } })
    expect(await collect(client, {})).toMatchObject({ text: "Hello.", calls: [], finish: ["stop"] })
  })
})

test("calls and results of the history become text", async () => {
  const { client, upstream } = await setUp([{ text: "Done." }])
  const call = (id: string, path: string) => ({
    id,
    type: "function" as const,
    function: { name: "read", arguments: JSON.stringify({ path }) },
  })
  await client.chat.completions.create({
    model: "m",
    tools,
    messages: [
      { role: "developer", content: "Be brief." },
      { role: "user", content: [{ type: "text", text: "Read both." }] },
      { role: "assistant", content: null, tool_calls: [call("1", "a"), call("2", "b")] },
      { role: "tool", tool_call_id: "2", content: "B's text" },
      { role: "tool", tool_call_id: "1", content: [{ type: "text", text: "A's text" }] },
    ],
  })
  const sent = lastBody(upstream).messages
  expect(sent.map(({ role }) => role)).toEqual(["system", "user", "assistant", "user"])
  expect(JSON.stringify(sent[0])).toContain("Be brief.")
  expect(String(sent[2]?.content)).toMatch(/"path":\s*"a".*"path":\s*"b"/s)
  expect(JSON.stringify(sent[3])).toMatch(/B's text.*A's text/)
  expect(sent.some((message) => message.tool_calls)).toBe(false)
})

/** What agents that were tried send in the third step of a task, but for the words: see docs/gateway.md. */
const agents = {
  pi: {
    settings: {
      store: false,
      max_completion_tokens: 16_384,
      reasoning_effort: "medium",
      stream_options: { include_usage: true },
    },
    parameters: { type: "object", required: ["path"], properties: { path: { type: "string" } } },
    before: [
      { role: "developer", content: "You are an agent." },
      { role: "user", content: [{ type: "text", text: "Read in.txt." }] },
    ],
    silence: null,
    result: "the secret word is plum\n",
  },
  "qwen-code": {
    settings: { max_tokens: 32_000, stream_options: { include_usage: true } },
    parameters: {
      $schema: "http://json-schema.org/draft-07/schema#",
      type: "object",
      properties: { path: { type: "string" } },
      additionalProperties: false,
    },
    before: [
      { role: "system", content: "You are an agent." },
      {
        role: "user",
        content: [
          { type: "text", text: "<system-reminder>\nA date.\n</system-reminder>" },
          { type: "text", text: "Read in.txt." },
        ],
      },
    ],
    silence: null,
    result: [{ type: "text", text: "the secret word is plum\n" }],
  },
  opencode: {
    settings: { max_tokens: 4_000, stream_options: { include_usage: true } },
    parameters: { $schema: "https://json-schema.org/draft/2020-12/schema", type: "object", properties: {} },
    before: [
      { role: "system", content: "You are an agent." },
      { role: "user", content: "Read in.txt." },
    ],
    silence: "",
    result: "<path>/in.txt</path>\n<content>\n1: the secret word is plum\n</content>",
  },
}

test.for(Object.entries(agents))(
  "%s: its requests are understood, and the next call is streamed",
  async ([_, { settings, parameters, before, silence, result }]) => {
    const refusal = { status: 400, text: "tools are not supported by this model" }
    const { gateway, upstream } = await setUp(
      [refusal, { text: `First.\n${called("out.txt", "write")}`, usage: { input: 100, output: 10 } }],
      { policy: "auto" },
    )
    const calls = [
      { id: "call_1", type: "function", function: { name: "read", arguments: '{"path":"in.txt"}' } },
    ]
    const response = await fetch(`${gateway.url}/chat/completions`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        authorization: "Bearer any",
        "sec-fetch-mode": "cors",
        "accept-language": "*",
        "x-stainless-lang": "js",
      },
      body: JSON.stringify({
        model: "m",
        stream: true,
        tool_choice: "auto",
        ...settings,
        tools: ["read", "write"].map((name) => ({
          type: "function",
          function: { name, description: "d", parameters },
        })),
        messages: [
          ...before,
          { role: "assistant", content: "I look first.", tool_calls: calls },
          { role: "tool", tool_call_id: "call_1", content: result },
          { role: "assistant", content: silence, tool_calls: [{ ...calls[0], id: "call_2" }] },
          { role: "tool", tool_call_id: "call_2", content: result },
        ],
      }),
    })
    const chunks = (await response.text()).split("\n\n").filter((line) => line !== "")
    expect(chunks.at(-1)).toBe("data: [DONE]")
    const text = chunks.join("\n")
    expect(text).toContain('"name":"write"')
    expect(text).toContain('"finish_reason":"tool_calls"')
    expect(chunks.at(-2)).toMatch(/"choices":\[\].*"prompt_tokens":100/)

    const { messages: sent, ...rest } = lastBody(upstream)
    expect(Object.keys(rest)).not.toContain("tools")
    expect(Object.keys(rest)).not.toContain("tool_choice")
    expect(sent.map(({ role }) => role)).toEqual(["system", "user", "assistant", "user", "assistant", "user"])
    expect(JSON.stringify(sent)).toMatch(
      /Read in\.txt.*I look first.*secret word is plum.*secret word is plum/s,
    )
    expect(rest).toMatchObject(settings)
  },
)

test("another API of OpenAI's or Anthropic's is told as what to set in the client", async () => {
  const { gateway } = await setUp([])
  for (const path of ["responses", "messages", "completions"]) {
    const response = await fetch(`${gateway.url}/${path}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: "{}",
    })
    expect(response.status).toBe(404)
    expect(await response.text()).toContain("chat completions")
  }
})

describe("tool_choice", () => {
  test("none: no call is looked for", async () => {
    const { client } = await setUp([{ text: called("a") }])
    const body = { model: "m", messages, tools, tool_choice: "none" as const }
    const { choices } = await client.chat.completions.create(body)
    expect(choices[0]?.message.tool_calls).toBeUndefined()
  })

  test("required: a model that answers in words is asked again", async () => {
    const { client, upstream } = await setUp([{ text: "I could." }, { text: called("a") }])
    const body = { model: "m", messages, tools, tool_choice: "required" as const }
    const { choices } = await client.chat.completions.create(body)
    expect(choices[0]?.finish_reason).toBe("tool_calls")
    expect(upstream.requests).toHaveLength(2)
  })

  test("a named tool: it is told, and one that is not offered is an error", async () => {
    const { client, upstream } = await setUp([{ text: called("a", "write") }])
    const named = (name: string) => ({ type: "function" as const, function: { name } })
    await client.chat.completions.create({ model: "m", messages, tools, tool_choice: named("write") })
    expect(JSON.stringify(lastBody(upstream).messages)).toContain("must hold a call of write")
    const wrong = client.chat.completions.create({ model: "m", messages, tools, tool_choice: named("rm") })
    expect(await failure(wrong)).toMatchObject({ status: 400, param: "tool_choice" })
  })
})

describe("policies", () => {
  const native: Reply = { calls: [{ id: "c1", name: "read", arguments: { path: "a" } }], pieceSize: 3 }

  test("native: the request and the answer as they come", async () => {
    const { client, upstream } = await setUp(() => native, { policy: "native" })
    const body = { model: "m", messages, tools, tool_choice: "auto" as const, seed: 4 }
    const answer = await client.chat.completions.create(body)
    expect(lastBody(upstream)).toEqual(body)
    expect(answer.choices[0]?.message.tool_calls?.[0]?.id).toBe("c1")
    const { calls, finish } = await collect(client, {})
    expect(calls[0]).toMatchObject({ id: "c1", arguments: '{"path":"a"}' })
    expect(finish).toEqual(["tool_calls"])
  })

  test("reject: an error for tools, an answer without them", async () => {
    const { client, upstream } = await setUp([{ text: "Hi." }], { policy: "reject" })
    const refused = await failure(client.chat.completions.create({ model: "m", messages, tools }))
    expect(refused).toMatchObject({ status: 400, code: "tools_not_supported", param: "tools" })
    expect(upstream.requests).toHaveLength(0)
    const answer = await client.chat.completions.create({ model: "m", messages })
    expect(answer.choices[0]?.message.content).toBe("Hi.")
  })

  test("ignore: the upstream hears nothing of tools", async () => {
    const { client, upstream } = await setUp([{ text: "In words." }], { policy: "ignore" })
    const answer = await client.chat.completions.create({
      model: "m",
      messages,
      tools,
      tool_choice: "required",
    })
    expect(answer.choices[0]?.message.content).toBe("In words.")
    expect(JSON.stringify(lastBody(upstream))).not.toMatch(/tool|To read a file/)
  })

  test("auto: native until tools are refused, then text, each model for itself", async () => {
    const { client, upstream } = await setUp(
      ({ body }) => {
        if (body.model === "other") return native
        if (body.tools) return { status: 400, text: "registry/m does not support tools" }
        return { text: called("a") }
      },
      { policy: "auto" },
    )
    for (const model of ["m", "m", "other"]) {
      const { choices } = await client.chat.completions.create({ model, messages, tools })
      expect(choices[0]?.finish_reason).toBe("tool_calls")
    }
    expect(upstream.requests.map(({ body }) => body.tools !== undefined)).toEqual([true, false, false, true])
  })

  test("auto: any other error is passed on and teaches nothing", async () => {
    const { client, upstream } = await setUp([{ status: 429, text: "Slow down." }, native], {
      policy: "auto",
    })
    const refused = await failure(client.chat.completions.create({ model: "m", messages, tools }))
    expect(refused.status).toBe(429)
    await client.chat.completions.create({ model: "m", messages, tools })
    expect(lastBody(upstream).tools).toHaveLength(2)
  })
})

test("the models are the upstream's", async () => {
  const { client } = await setUp([])
  expect((await client.models.list()).data.map(({ id }) => id)).toEqual(["m", "other"])
})

describe("an upstream that fails", () => {
  test("with a status: the same, with its words", async () => {
    const { client } = await setUp([{ status: 429, text: "Slow down.", headers: { "retry-after": "7" } }])
    const error = await failure(client.chat.completions.create({ model: "m", messages, tools }))
    expect(error).toMatchObject({ status: 429, type: "rate_limit_error" })
    expect(error.message).toContain("Slow down.")
    expect(error.headers?.get("retry-after")).toBe("7")
  })

  test.each([
    ["html", false],
    ["html", true],
    ["garbage", false],
    ["cut", false],
    ["reset", true],
    ["no-finish", true],
    ["cut", true],
  ] as const)("by %s, streamed %s: an error, and no answer that looks whole", async (fault, stream) => {
    const { client } = await setUp([{ text: "Some words in many pieces.", pieceSize: 3, fault }])
    const error = await failure(
      stream ? collect(client, {}) : client.chat.completions.create({ model: "m", messages, tools }),
    )
    expect(error.type).toBe("server_error")
  })

  test.each([true, false])("by silence, streamed %s: an error after the time that it has", async (stream) => {
    const { client } = await setUp([{ fault: "hang" }], { silenceMs: 50 })
    const asked = stream
      ? collect(client, {})
      : client.chat.completions.create({ model: "m", messages, tools })
    expect(await failure(asked)).toMatchObject({ status: 504, code: "upstream_timeout" })
  })

  test("by not being there", async () => {
    const gone = await startModelServer({ script: [] })
    await gone.close()
    const { client } = await gatewayFor(gone.url)
    const asked = client.chat.completions.create({ model: "m", messages, tools })
    expect(await failure(asked)).toMatchObject({ status: 502, code: "upstream_unreachable" })
    expect((await failure(client.models.list())).status).toBe(502)
  })
})

test("a call of which part was sent and that cannot be read after all ends the stream with an error", async () => {
  const broken = '<tool_call>\n{"name": "read", "arguments": {"path": "a", "b": [}'
  const { client } = await setUp([{ text: broken, pieceSize: 5 }, { text: called("a") }])
  expect(await failure(collect(client, {}))).toMatchObject({ code: "malformed_call" })
})

test("an answer that is passed on and breaks off breaks off for the client too", async () => {
  const { client } = await setUp([{ text: "Some words.", pieceSize: 2, pieceDelayMs: 1, fault: "cut" }], {
    policy: "native",
  })
  await expect(collect(client, {})).rejects.toThrow()
})

test("requests side by side get their own answers", async () => {
  const { client } = await setUp(({ body }) => ({
    text: called(JSON.stringify(body.messages).match(/file-\d+/)?.[0] ?? ""),
    pieceSize: 5,
    pieceDelayMs: 1,
  }))
  const paths = Array.from({ length: 12 }, (_, index) => `file-${index}`)
  const answers = await Promise.all(
    paths.map((path) => collect(client, { messages: [{ role: "user", content: path }] })),
  )
  expect(answers.map(({ calls }) => calls[0]?.arguments)).toEqual(paths.map((path) => `{"path": "${path}"}`))
})

test("a client that goes away ends the request to the upstream", async () => {
  const { promise: gone, resolve } = Promise.withResolvers<void>()
  const { createServer } = await import("node:http")
  const upstream = createServer((_, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" })
    response.write(`data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: "One." } }] })}\n\n`)
    response.once("close", resolve)
  })
  await new Promise<void>((listening) => upstream.listen(0, "127.0.0.1", listening))
  cleanups.push(async () => void upstream.close())
  const address = upstream.address()
  const port = typeof address === "object" ? address?.port : 0
  const { client } = await gatewayFor(`http://127.0.0.1:${port}/v1`)
  const stream = await client.chat.completions.create({ model: "m", messages, tools, stream: true })
  for await (const _chunk of stream) break
  await gone
})

describe("who may ask", () => {
  /** A request with these headers, the client's own aside. */
  async function statusOf(url: string, headers: Record<string, string>, body = "{}"): Promise<number> {
    const { promise, resolve, reject } = Promise.withResolvers<number>()
    const sent = httpRequest(`${url}/chat/completions`, { method: "POST", headers }, (response) => {
      response.resume()
      resolve(response.statusCode ?? 0)
    })
    sent.on("error", reject)
    sent.end(body)
    return await promise
  }
  const json = { "content-type": "application/json" }

  test("with a key: who has it, and the upstream does not see it", async () => {
    const { client, gateway, upstream } = await setUp([{ text: "Hi." }], { key: "sesame" })
    expect(await failure(client.models.list())).toMatchObject({ status: 401, code: "invalid_api_key" })
    const known = new OpenAI({ baseURL: gateway.url, apiKey: "sesame", maxRetries: 0 })
    await known.chat.completions.create({ model: "m", messages })
    expect(upstream.requests.map(({ headers }) => headers.authorization)).toEqual([undefined])
  })

  test("no page of a browser: neither under a name of its own nor with a plain text", async () => {
    const { gateway } = await setUp([])
    expect(await statusOf(gateway.url, { ...json, host: "rebound.example.com" })).toBe(403)
    expect(await statusOf(gateway.url, { "content-type": "text/plain" })).toBe(415)
    expect(await statusOf(gateway.url, json)).toBe(400)
  })

  test("no body without an end", async () => {
    const { gateway } = await setUp([], { maxBodyBytes: 100 })
    expect(await statusOf(gateway.url, json, " ".repeat(101))).toBe(413)
    expect(await statusOf(gateway.url, json, " ".repeat(400_000))).toBe(413)
  })

  test("nobody from elsewhere without a key", async () => {
    await expect(gatewayFor("http://127.0.0.1:1/v1", { host: "0.0.0.0" })).rejects.toThrow("--key")
  })
})

test("a wrong request is told which part of it is wrong", async () => {
  const { client } = await setUp([])
  const asked = client.chat.completions.create({ model: "m", messages: [{ role: "user" } as never], tools })
  expect(await failure(asked)).toMatchObject({ status: 400, param: "messages.0.content" })
  expect((await failure(client.embeddings.create({ model: "m", input: "x" }))).status).toBe(404)
})

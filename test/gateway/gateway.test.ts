import { describe, expect, test } from "vitest"
import type { Reply } from "../../src/testing/reply.ts"
import { called, collect, failure, lastBody, messages, setUp, tools } from "./start-gateway.ts"

describe("gateway: answers with calls", () => {
  const usage = { input: 11, output: 7 }

  test("returns calls with ids, null content, finish reason and usage", async () => {
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

  test("streams arguments in pieces, the finish reason and requested usage", async () => {
    const long = "x".repeat(2_000)
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

  test("returns only the first call without parallel_tool_calls", async () => {
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

  test("streams an answer that the upstream sends at once", async () => {
    const { client } = await setUp([{ text: called("a"), whole: true }])
    const { calls, finish } = await collect(client, {})
    expect(calls.map((call) => call.arguments)).toEqual(['{"path": "a"}'])
    expect(finish).toEqual(["tool_calls"])
  })

  test("returns an answer without calls as text", async () => {
    const { client } = await setUp(() => ({ text: "Hello." }))
    const answer = await client.chat.completions.create({ model: "m", messages, tools })
    expect(answer.choices[0]).toMatchObject({ finish_reason: "stop", message: { content: "Hello." } })
    expect(await collect(client, {})).toMatchObject({ text: "Hello.", calls: [], finish: ["stop"] })
  })
})

test("sends calls and results of the history as text", async () => {
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

/** Requests of the tested agents in the third step of a task, with shortened texts: see docs/gateway.md. */
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

test("answers 404 for other APIs and names the ones to configure", async () => {
  const { gateway } = await setUp([])
  for (const path of ["completions", "embeddings", "responses/resp_1", "messages/batches"]) {
    const response = await fetch(`${gateway.url}/${path}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: "{}",
    })
    expect(response.status).toBe(404)
    expect(await response.text()).toContain("/v1/chat/completions, /v1/responses, /v1/messages")
  }
})

describe("tool_choice", () => {
  test("none: does not look for calls", async () => {
    const { client } = await setUp([{ text: called("a") }])
    const body = { model: "m", messages, tools, tool_choice: "none" as const }
    const { choices } = await client.chat.completions.create(body)
    expect(choices[0]?.message.tool_calls).toBeUndefined()
  })

  test("required: calls the model again if it answers without a call", async () => {
    const { client, upstream } = await setUp([{ text: "I could." }, { text: called("a") }])
    const body = { model: "m", messages, tools, tool_choice: "required" as const }
    const { choices } = await client.chat.completions.create(body)
    expect(choices[0]?.finish_reason).toBe("tool_calls")
    expect(upstream.requests).toHaveLength(2)
  })

  test("a named tool: requires it, and rejects a tool that is not offered", async () => {
    const { client, upstream } = await setUp([{ text: called("a", "write") }])
    const named = (name: string) => ({ type: "function" as const, function: { name } })
    await client.chat.completions.create({ model: "m", messages, tools, tool_choice: named("write") })
    expect(JSON.stringify(lastBody(upstream).messages)).toContain("must contain a call to write")
    const wrong = client.chat.completions.create({ model: "m", messages, tools, tool_choice: named("rm") })
    expect(await failure(wrong)).toMatchObject({ status: 400, param: "tool_choice" })
  })
})

describe("gateway: custom tools", () => {
  const patch = {
    type: "custom" as const,
    custom: {
      name: "apply_patch",
      description: "Applies a patch.",
      format: { type: "grammar" as const, grammar: { syntax: "lark" as const, definition: "start: /.+/" } },
    },
  }
  const text =
    'Now.\n<tool_call>\n{"name": "apply_patch", "arguments": {"input": "*** \\"a\\"\\n"}}\n</tool_call>'

  test("are offered as functions of one text, and their calls contain the text", async () => {
    const { client, upstream } = await setUp(() => ({ text, pieceSize: 9 }))
    const request = { model: "m", messages, tools: [...tools, patch] }
    const answer = await client.chat.completions.create(request)
    const [call] = answer.choices[0]?.message.tool_calls ?? []
    expect(call).toMatchObject({ type: "custom", custom: { name: "apply_patch", input: '*** "a"\n' } })
    expect(lastBody(upstream).messages[0]?.content).toContain("start: /.+/")

    const stream = await client.chat.completions.create({ ...request, stream: true })
    const pieces = []
    for await (const { choices } of stream) pieces.push(...(choices[0]?.delta.tool_calls ?? []))
    expect(pieces).toMatchObject([
      { index: 0, type: "custom", custom: { name: "apply_patch", input: "" } },
      { index: 0, custom: { input: '*** "a"\n' } },
    ])
  })

  test("are read from the history, and can be required", async () => {
    const { client, upstream } = await setUp(() => ({ text }))
    await client.chat.completions.create({
      model: "m",
      tools: [...tools, patch],
      tool_choice: { type: "custom", custom: { name: "apply_patch" } },
      messages: [
        ...messages,
        {
          role: "assistant",
          tool_calls: [{ id: "c1", type: "custom", custom: { name: "apply_patch", input: "*** old" } }],
        },
        { role: "tool", tool_call_id: "c1", content: "Applied." },
      ],
    })
    const sent = JSON.stringify(lastBody(upstream).messages)
    expect(sent).toContain("*** old")
    expect(sent).toContain('<tool_response name=\\"apply_patch\\">\\nApplied.')
    expect(sent).toContain("must contain a call to apply_patch")
  })

  test("several answers to one request are refused before the upstream is asked", async () => {
    const { client, upstream } = await setUp(() => ({ text }))
    const error = await failure(client.chat.completions.create({ model: "m", messages, tools, n: 2 }))
    expect(error).toMatchObject({ status: 400, param: "n" })
    expect(upstream.requests).toHaveLength(0)
  })
})

describe("gateway: policies", () => {
  const native: Reply = { calls: [{ id: "c1", name: "read", arguments: { path: "a" } }], pieceSize: 3 }

  test("native: passes request and answer through", async () => {
    const { client, upstream } = await setUp(() => native, { policy: "native" })
    const body = { model: "m", messages, tools, tool_choice: "auto" as const, seed: 4 }
    const answer = await client.chat.completions.create(body)
    expect(lastBody(upstream)).toEqual(body)
    expect(answer.choices[0]?.message.tool_calls?.[0]?.id).toBe("c1")
    const { calls, finish } = await collect(client, {})
    expect(calls[0]).toMatchObject({ id: "c1", arguments: '{"path":"a"}' })
    expect(finish).toEqual(["tool_calls"])
  })

  test("reject: refuses a request with tools and answers others", async () => {
    const { client, upstream } = await setUp([{ text: "Hi." }], { policy: "reject" })
    const refused = await failure(client.chat.completions.create({ model: "m", messages, tools }))
    expect(refused).toMatchObject({ status: 400, code: "tools_not_supported", param: "tools" })
    expect(upstream.requests).toHaveLength(0)
    const answer = await client.chat.completions.create({ model: "m", messages })
    expect(answer.choices[0]?.message.content).toBe("Hi.")
  })

  test("ignore: sends no tools to the upstream", async () => {
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

  test("auto: switches a model to text after a refusal of tools", async () => {
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

  test("auto: passes other errors on and does not switch", async () => {
    const { client, upstream } = await setUp([{ status: 429, text: "Slow down." }, native], {
      policy: "auto",
    })
    const refused = await failure(client.chat.completions.create({ model: "m", messages, tools }))
    expect(refused.status).toBe(429)
    await client.chat.completions.create({ model: "m", messages, tools })
    expect(lastBody(upstream).tools).toHaveLength(2)
  })
})

test("lists the models of the upstream", async () => {
  const { client } = await setUp([])
  expect((await client.models.list()).data.map(({ id }) => id)).toEqual(["m", "other"])
})

test("keeps concurrent requests apart", async () => {
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

import type OpenAI from "openai"
import { describe, expect, test } from "vitest"
import type { Script } from "../../src/testing/model-server.ts"
import { called, failure, lastBody, setUp } from "./start-gateway.ts"

/** The fields of a response that tests read. */
interface ResponseBody {
  output: { call_id: string }[]
  usage: Record<string, number>
}

async function start(script: Script) {
  const { gateway, upstream, client } = await setUp(script)
  const ask = async (body: object) => {
    const response = await fetch(`${gateway.url}/responses`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: "m", input: "Go.", ...body }),
    })
    return { status: response.status, body: (await response.json()) as ResponseBody }
  }
  return { gateway, upstream, client, ask }
}

const read = {
  type: "function" as const,
  name: "read",
  description: "Reads.",
  parameters: { type: "object", properties: { path: { type: "string" } }, required: ["path"] },
  strict: false,
}

const patch = {
  type: "custom" as const,
  name: "apply_patch",
  description: "Patches.",
  format: { type: "grammar" as const, syntax: "lark" as const, definition: 'start: "*** Begin Patch"' },
}

describe("gateway: responses", () => {
  test("streams events in the order and with the fields of OpenAI's API", async () => {
    const { client } = await start([{ reasoning: "Hm.", text: `Now.\n${called("a")}`, pieceSize: 6 }])
    const events: OpenAI.Responses.ResponseStreamEvent[] = []
    for await (const event of await client.responses.create({
      model: "m",
      input: "Go.",
      tools: [read],
      stream: true,
    }))
      events.push(event)
    expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, index) => index))
    const types = events.map(({ type }) => type).filter((type, index, all) => type !== all[index - 1])
    expect(types).toEqual([
      "response.created",
      "response.in_progress",
      "response.output_item.added",
      "response.reasoning_summary_part.added",
      "response.reasoning_summary_text.delta",
      "response.reasoning_summary_text.done",
      "response.reasoning_summary_part.done",
      "response.output_item.done",
      "response.output_item.added",
      "response.content_part.added",
      "response.output_text.delta",
      "response.output_text.done",
      "response.content_part.done",
      "response.output_item.done",
      "response.output_item.added",
      "response.function_call_arguments.delta",
      "response.function_call_arguments.done",
      "response.output_item.done",
      "response.completed",
    ])
    const last = events.at(-1)
    const done = events.filter((event) => event.type === "response.output_item.done").map(({ item }) => item)
    expect(last).toMatchObject({ response: { status: "completed", output: done, error: null } })
    expect(done).toMatchObject([
      { type: "reasoning", summary: [{ text: "Hm." }] },
      { type: "message", role: "assistant", content: [{ type: "output_text", text: "Now." }] },
      { type: "function_call", name: "read", arguments: '{"path": "a"}', status: "completed" },
    ])
    expect(new Set(events.flatMap((event) => ("response" in event ? [event.response.id] : []))).size).toBe(1)
  })

  test("passes a custom tool its text, streamed and in one piece", async () => {
    const text = '*** Begin Patch\n"quoted"\n*** End Patch'
    const call = `<tool_call>\n${JSON.stringify({ name: "apply_patch", arguments: { input: text } })}\n</tool_call>`
    const { client, upstream } = await start(() => ({ text: call, pieceSize: 9 }))
    const { output } = await client.responses.create({ model: "m", input: "Go.", tools: [patch] })
    expect(output).toMatchObject([{ type: "custom_tool_call", name: "apply_patch", input: text }])
    expect(JSON.stringify(lastBody(upstream).messages)).toContain("Begin Patch")
    const inputs: string[] = []
    for await (const event of await client.responses.create({
      model: "m",
      input: "Go.",
      tools: [patch],
      stream: true,
    }))
      if (event.type === "response.custom_tool_call_input.done") inputs.push(event.input)
    expect(inputs).toEqual([text])
  })

  test("sends calls of custom tools in the history as text", async () => {
    const { client, upstream } = await start([{ text: "Done." }])
    await client.responses.create({
      model: "m",
      tools: [patch],
      input: [
        { role: "user", content: "Patch." },
        { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "sealed" },
        { type: "custom_tool_call", call_id: "c1", name: "apply_patch", input: "*** Begin" },
        { type: "custom_tool_call_output", call_id: "c1", output: "Applied." },
      ],
    })
    const { messages: sent } = lastBody(upstream)
    expect(sent.map(({ role }) => role)).toEqual(["system", "user", "assistant", "user"])
    expect(JSON.stringify(sent.slice(2))).toMatch(/\*\*\* Begin.*Applied\./)
    expect(JSON.stringify(sent)).not.toContain("sealed")
  })

  test("finds the tools of a namespace, also if two have the same name", async () => {
    const namespace = (name: string) => ({ type: "namespace", name, description: "Files.", tools: [read] })
    const { ask, upstream } = await start([
      { text: called("a", "other__read") },
      { text: called("a", "mcp__read") },
    ])
    const tools = [namespace("mcp"), namespace("other"), { type: "web_search" }]
    const { body } = await ask({ tools })
    expect(body.output).toMatchObject([{ type: "function_call", name: "read", namespace: "other" }])
    const [call] = body.output
    const input = [call, { type: "function_call_output", call_id: call?.call_id, output: "Text." }]
    await ask({ tools, input })
    expect(JSON.stringify(lastBody(upstream).messages)).toMatch(/other__read.*Text\./)
    expect(JSON.stringify(lastBody(upstream).messages)).not.toContain("web_search")
  })

  test("offers the tools that an item adds", async () => {
    const { ask, upstream } = await start([{ text: called("a") }])
    const added = [{ type: "namespace", name: "functions", tools: [read, patch] }]
    const input = [
      { type: "additional_tools", role: "developer", tools: added },
      { role: "user", content: "Go." },
    ]
    const { body } = await ask({ input })
    expect(body.output).toMatchObject([{ type: "function_call", name: "read", namespace: "functions" }])
    expect(JSON.stringify(lastBody(upstream).messages)).toMatch(/Reads\..*Patches\./s)
  })

  test("lets the client search for deferred tools, and offers what it finds", async () => {
    const search = { name: "tool_search", arguments: { query: "read" } }
    const { client, upstream } = await start([
      { text: `<tool_call>\n${JSON.stringify(search)}\n</tool_call>`, pieceSize: 4 },
      { text: called("a") },
    ])
    const tool = {
      type: "tool_search" as const,
      execution: "client" as const,
      description: "Searches for tools.",
      parameters: { type: "object", properties: { query: { type: "string" } } },
    }
    const items: OpenAI.Responses.ResponseOutputItem[] = []
    const request = { model: "m", input: "Go.", tools: [tool], stream: true as const }
    for await (const event of await client.responses.create(request))
      if (event.type === "response.output_item.done") items.push(event.item)
    expect(items).toMatchObject([
      { type: "tool_search_call", execution: "client", arguments: { query: "read" }, status: "completed" },
    ])
    const [call] = items
    if (call?.type !== "tool_search_call") throw new Error("No search.")
    const found = {
      type: "tool_search_output" as const,
      call_id: call.call_id,
      execution: "client" as const,
      tools: [{ type: "namespace" as const, name: "mcp", description: "Files.", tools: [read] }],
    }
    const { output } = await client.responses.create({ model: "m", input: [call, found], tools: [tool] })
    expect(output).toMatchObject([{ type: "function_call", name: "read", namespace: "mcp" }])
    expect(JSON.stringify(lastBody(upstream).messages)).toMatch(/Reads\..*now available: read/s)
  })

  test("sends messages between agents as user messages", async () => {
    const { ask, upstream } = await start([{ text: "Hi." }])
    const content = [
      { type: "input_text", text: "Task:\n" },
      { type: "encrypted_content", encrypted_content: "Say hi." },
    ]
    await ask({ input: [{ type: "agent_message", author: "/root", recipient: "/root/sub", content }] })
    expect(lastBody(upstream).messages).toMatchObject([{ role: "user", content: "Task:\nSay hi." }])
  })

  test("refuses tools that an item adds with the policy reject", async () => {
    const { client, upstream } = await setUp([], { policy: "reject" })
    const input = [{ type: "additional_tools" as const, role: "developer" as const, tools: [read] }]
    const error = await failure(client.responses.create({ model: "m", input }))
    expect(error).toMatchObject({ status: 400, code: "tools_not_supported" })
    expect(upstream.requests).toHaveLength(0)
  })

  test("offers only allowed tools", async () => {
    const { ask, upstream } = await start([{ text: called("a") }])
    const tool_choice = {
      type: "allowed_tools",
      mode: "required",
      tools: [{ type: "function", name: "read" }],
    }
    await ask({ tools: [read, { ...read, name: "write", description: "Writes." }], tool_choice })
    expect(JSON.stringify(lastBody(upstream).messages)).toMatch(/Reads\.(?!.*Writes\.).*must contain/s)
  })

  test("joins instructions and developer messages at the start, and sends later ones as user messages", async () => {
    const { client, upstream } = await start([{ text: "Hi." }])
    await client.responses.create({
      model: "m",
      instructions: "One.",
      input: [
        { role: "developer", content: [{ type: "input_text", text: "Two." }] },
        { role: "user", content: "Three." },
        { role: "developer", content: "Four." },
      ],
    })
    expect(lastBody(upstream).messages).toMatchObject([
      { role: "system", content: "One.\n\nTwo." },
      { role: "user", content: [{ text: "Three." }, { text: "<system>\nFour.\n</system>" }] },
    ])
  })

  test("converts the answer format and the effort to fields of chat completions", async () => {
    const { client, upstream } = await start([{ text: "{}" }])
    const schema = { type: "object", properties: {}, additionalProperties: false }
    await client.responses.create({
      model: "m",
      input: "Go.",
      reasoning: { effort: "low" },
      text: { format: { type: "json_schema", name: "answer", schema, strict: true } },
    })
    expect(lastBody(upstream)).toMatchObject({
      reasoning_effort: "low",
      response_format: { type: "json_schema", json_schema: { name: "answer", schema, strict: true } },
    })
  })

  test("sends images of results after the results", async () => {
    const { client, upstream } = await start([{ text: "Seen." }])
    await client.responses.create({
      model: "m",
      tools: [read],
      input: [
        { type: "function_call", call_id: "c1", name: "read", arguments: '{"path":"a.png"}' },
        {
          type: "function_call_output",
          call_id: "c1",
          output: [
            { type: "input_text", text: "A photo." },
            { type: "input_image", image_url: "data:image/png;base64,AAAA", detail: "auto" },
          ],
        },
      ],
    })
    const sent = JSON.stringify(lastBody(upstream).messages)
    expect(sent).toMatch(/A photo\..*Files returned by the read call c1:.*data:image\/png;base64,AAAA/)
  })

  test("estimates tokens that the upstream does not count", async () => {
    const whole = {
      id: "1",
      choices: [{ index: 0, message: { role: "assistant", content: "12345678" }, finish_reason: "stop" }],
    }
    const { ask } = await start([{ body: JSON.stringify(whole) }])
    const { usage } = (await ask({ input: "x".repeat(4_000) })).body
    expect(usage.input_tokens).toBeGreaterThan(1_000)
    expect(usage).toMatchObject({ output_tokens: 2, total_tokens: (usage.input_tokens ?? 0) + 2 })
  })

  test("ends an interrupted stream with response.failed", async () => {
    const { client } = await start([{ text: "Some words in pieces.", pieceSize: 3, fault: "cut" }])
    const types: string[] = []
    const stream = await client.responses.create({ model: "m", input: "Go.", tools: [read], stream: true })
    let error: unknown
    for await (const event of stream) {
      types.push(event.type)
      if (event.type === "response.failed") error = event.response.error
    }
    expect(types.at(-1)).toBe("response.failed")
    expect(error).toMatchObject({ message: expect.any(String), code: expect.any(String) })
  })

  test.each([
    [{ input: undefined }, "input"],
    [{ input: [{ role: "user" }] }, "input.0.content"],
    [{ input: [{ type: "function_call", call_id: "c", name: "read" }] }, "input.0.arguments"],
    [{ input: [{ type: "computer_call" }] }, "input.0"],
    [{ input: [{ type: "item_reference", id: "rs_1" }] }, "input.0"],
    [
      { input: [{ role: "user", content: [{ type: "input_image", file_id: "f" }] }] },
      "input.0.content.0.image_url",
    ],
    [{ tools: [{ type: "function" }] }, "tools.0.name"],
    [{ tool_choice: { type: "function", name: "rm" } }, "tool_choice"],
    [{ previous_response_id: "resp_1" }, "previous_response_id"],
  ])("names the invalid field of %j", async (body, param) => {
    const { ask } = await start([])
    expect(await ask(body)).toMatchObject({
      status: 400,
      body: {
        error: { type: "invalid_request_error", param, code: "invalid_request", message: expect.any(String) },
      },
    })
  })

  test.each([
    [{ conversation: "conv_1" }, 'Send the whole conversation in "input".'],
    [{ background: true }, "Send the request without this field, and wait for the answer."],
  ])("says what to send instead of the stored data of %j", async (body, next) => {
    const { ask } = await start([])
    expect(await ask(body)).toMatchObject({
      status: 400,
      body: { error: { message: expect.stringContaining(next) } },
    })
  })

  test("writes errors like OpenAI's API", async () => {
    const { client } = await start([{ status: 429, text: "Slow down." }])
    const error = await failure(client.responses.create({ model: "m", input: "Go." }))
    expect(error).toMatchObject({ status: 429, type: "invalid_request_error" })
  })
})

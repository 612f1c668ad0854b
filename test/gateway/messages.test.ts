import { describe, expect, test } from "vitest"
import type { GatewayOptions } from "../../src/gateway/server.ts"
import type { Script } from "../../src/testing/model-server.ts"
import { called, lastBody, setUp } from "./start-gateway.ts"

async function start(script: Script, options: Partial<GatewayOptions> = {}) {
  const { gateway, upstream } = await setUp(script, options)
  const post = (path: string, body: object) =>
    fetch(`${gateway.url}/${path}`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "x-api-key": "client-key",
        "anthropic-version": "2023-06-01",
      },
      body: JSON.stringify({
        model: "m",
        max_tokens: 100,
        messages: [{ role: "user", content: "Go." }],
        ...body,
      }),
    })
  const ask = async (body: object, path = "messages") => {
    const response = await post(path, body)
    return { status: response.status, body: (await response.json()) as Record<string, never> }
  }
  const stream = async (body: object) => {
    const text = await (await post("messages?beta=true", { ...body, stream: true })).text()
    return text
      .split("\n\n")
      .filter(Boolean)
      .map((event) => {
        const [, name, data = ""] = /^event: (\S+)\ndata: (.*)$/.exec(event) ?? []
        const parsed = JSON.parse(data) as { type: string; [field: string]: unknown }
        expect(parsed.type).toBe(name)
        return parsed
      })
  }
  return { gateway, upstream, ask, stream }
}

const read = {
  name: "read",
  description: "Reads.",
  input_schema: { type: "object", properties: { path: { type: "string" } }, required: ["path"] },
}

describe("gateway: messages", () => {
  test("streams events in the order and with the fields of Anthropic's API", async () => {
    const { stream, upstream } = await start([
      { reasoning: "Hm.", text: `Now.\n${called("a")}`, usage: { input: 30, output: 9, cached: 10 } },
    ])
    const events = await stream({ tools: [read], thinking: { type: "enabled", budget_tokens: 1_024 } })
    expect(events).toMatchObject([
      {
        type: "message_start",
        message: { type: "message", role: "assistant", model: "m", content: [], stop_reason: null },
      },
      {
        type: "content_block_start",
        index: 0,
        content_block: { type: "thinking", thinking: "", signature: "" },
      },
      { type: "content_block_delta", index: 0, delta: { type: "thinking_delta", thinking: "Hm." } },
      { type: "content_block_stop", index: 0 },
      { type: "content_block_start", index: 1, content_block: { type: "text", text: "" } },
      { type: "content_block_delta", index: 1, delta: { type: "text_delta", text: "Now." } },
      { type: "content_block_stop", index: 1 },
      { type: "content_block_start", index: 2, content_block: { type: "tool_use", name: "read", input: {} } },
      {
        type: "content_block_delta",
        index: 2,
        delta: { type: "input_json_delta", partial_json: '{"path": "a"}' },
      },
      { type: "content_block_stop", index: 2 },
      {
        type: "message_delta",
        delta: { stop_reason: "tool_use", stop_sequence: null },
        usage: { input_tokens: 20, cache_read_input_tokens: 10, output_tokens: 9 },
      },
      { type: "message_stop" },
    ])
    expect(upstream.requests[0]?.headers.authorization).toBe("Bearer client-key")
  })

  test.each([
    [{}],
    [{ thinking: { type: "disabled" } }],
    [{ thinking: { type: "adaptive", display: "omitted" } }],
  ])("omits thinking if the client does not read it (%j)", async (body) => {
    const { ask, stream } = await start(() => ({ reasoning: "Hm.", text: "Yes." }))
    expect((await ask(body)).body.content).toEqual([{ type: "text", text: "Yes." }])
    const blocks = (await stream(body)).filter(({ type }) => type === "content_block_start")
    expect(blocks).toMatchObject([{ index: 0, content_block: { type: "text" } }])
  })

  test("sends system blocks, documents, thinking and server calls of the history in a form that the upstream knows", async () => {
    const { ask, upstream } = await start([{ text: "Done." }])
    await ask({
      system: [
        { type: "text", text: "One.", cache_control: { type: "ephemeral" } },
        { type: "text", text: "Two." },
      ],
      tools: [read, { type: "web_search_20250305", name: "web_search" }],
      messages: [
        {
          role: "user",
          content: [
            {
              type: "document",
              title: "Notes",
              source: { type: "text", media_type: "text/plain", data: "Plum." },
            },
          ],
        },
        { role: "system", content: [{ type: "text", text: "Three." }] },
        {
          role: "assistant",
          content: [
            { type: "thinking", thinking: "Secret thought.", signature: "s" },
            { type: "redacted_thinking", data: "x" },
            { type: "server_tool_use", id: "s1", name: "web_search", input: {} },
            { type: "tool_use", id: "t1", name: "read", input: { path: "a.png" } },
          ],
        },
        {
          role: "user",
          content: [
            {
              type: "tool_result",
              tool_use_id: "t1",
              content: [
                { type: "text", text: "A photo." },
                { type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" } },
              ],
            },
            { type: "text", text: "And now?" },
          ],
        },
      ],
    })
    const { messages: sent, max_tokens } = lastBody(upstream)
    expect(max_tokens).toBe(100)
    expect(sent.map(({ role }) => role)).toEqual(["system", "user", "assistant", "user"])
    const text = JSON.stringify(sent)
    expect(text).toMatch(/One\.\\n\\nTwo\..*Notes\\nPlum\..*<system>\\nThree\./)
    expect(text).toMatch(/A photo\..*Files returned by the read call t1:.*base64,AAAA.*And now\?/)
    expect(text).not.toMatch(/Secret thought|web_search/)
  })

  test("offers a deferred tool after a result names it", async () => {
    const { ask, upstream } = await start(() => ({ text: "Hi." }))
    const search = { ...read, name: "search", description: "Searches for tools." }
    const tools = [search, { ...read, description: "Reads.", defer_loading: true }]
    await ask({ tools })
    expect(JSON.stringify(lastBody(upstream).messages)).toMatch(/Searches for tools\.(?!.*Reads\.)/s)
    await ask({
      tools,
      messages: [
        { role: "user", content: "Go." },
        { role: "assistant", content: [{ type: "tool_use", id: "t1", name: "search", input: {} }] },
        {
          role: "user",
          content: [
            {
              type: "tool_result",
              tool_use_id: "t1",
              content: [{ type: "tool_reference", tool_name: "read" }],
            },
          ],
        },
      ],
    })
    expect(JSON.stringify(lastBody(upstream).messages)).toMatch(/Reads\./)
  })

  test("accepts one call if parallel use is disabled", async () => {
    const { ask } = await start([{ text: `${called("a")}\n${called("b")}` }])
    const { body } = await ask({
      tools: [read],
      tool_choice: { type: "auto", disable_parallel_tool_use: true },
    })
    expect(body.content).toMatchObject([{ type: "tool_use", input: { path: "a" } }])
    expect(body.stop_reason).toBe("tool_use")
  })

  test("estimates the tokens of a request without asking the upstream", async () => {
    const { ask, upstream } = await start([])
    const count = async (body: object) => Number((await ask(body, "messages/count_tokens")).body.input_tokens)
    const short = await count({ max_tokens: undefined })
    expect(short).toBeGreaterThan(0)
    expect(await count({ messages: [{ role: "user", content: "x".repeat(4_000) }] })).toBeGreaterThan(
      short + 900,
    )
    expect(await count({ tools: [read] })).toBeGreaterThan(short + 10)
    const data = "A".repeat(400_000)
    const image = { type: "image", source: { type: "base64", media_type: "image/png", data } }
    const withImage = await count({ messages: [{ role: "user", content: [image] }] })
    expect(withImage).toBeGreaterThan(1_000)
    expect(withImage).toBeLessThan(3_000)
    expect(upstream.requests).toHaveLength(0)
  })

  test.each([
    [{ messages: [] }, "messages"],
    [{ messages: [{ role: "user" }] }, "messages.0.content"],
    [
      { messages: [{ role: "user", content: [{ type: "image", source: { type: "file", file_id: "f" } }] }] },
      "messages.0.content.0.source",
    ],
    [
      { messages: [{ role: "assistant", content: [{ type: "tool_use", id: "t" }] }] },
      "messages.0.content.0.name",
    ],
    [{ messages: [{ role: "user", content: [{ type: "hologram" }] }] }, "messages.0.content.0"],
    [{ tools: [{}] }, "tools.0.name"],
    [{ tool_choice: { type: "tool", name: "rm" } }, "does not offer a tool named rm"],
  ])("names the invalid field of %j", async (body, where) => {
    const { ask } = await start([])
    for (const path of ["messages", "messages/count_tokens"])
      expect(await ask(body, path)).toMatchObject({
        status: 400,
        body: {
          type: "error",
          error: { type: "invalid_request_error", message: expect.stringContaining(where) },
        },
      })
  })

  test.each([
    [401, "authentication_error"],
    [403, "permission_error"],
    [404, "not_found_error"],
    [429, "rate_limit_error"],
    [500, "api_error"],
    [529, "overloaded_error"],
  ])("writes status %i as %s", async (status, type) => {
    const { ask } = await start([{ status, text: "The reason." }])
    expect(await ask({})).toMatchObject({
      status,
      body: { type: "error", error: { type, message: "The reason." } },
    })
  })

  test.each([
    [
      { type: "base64", media_type: "application/pdf", data: "JVBERi0=" },
      "data:application/pdf;base64,JVBERi0=",
    ],
    [{ type: "base64", media_type: "text/plain", data: "UGx1bS4=" }, "Plum."],
    [{ type: "content", content: [{ type: "text", text: "Plum." }] }, "Plum."],
  ])("sends the document %j", async (source, sent) => {
    const { ask, upstream } = await start([{ text: "Read." }])
    const content = [{ type: "document", source }]
    expect((await ask({ messages: [{ role: "user", content }] })).status).toBe(200)
    expect(JSON.stringify(lastBody(upstream).messages)).toContain(sent)
  })

  test.each([
    [{ type: "base64", media_type: "application/zip", data: "AAAA" }, "application/zip"],
    [{ type: "url", url: "https://example.com/a.pdf" }, "documents by URL"],
    [{ type: "file", file_id: "f" }, "sources of type file"],
  ])("refuses the document %j", async (source, words) => {
    const { ask, upstream } = await start([])
    const content = [{ type: "document", source }]
    expect(await ask({ messages: [{ role: "user", content }] })).toMatchObject({
      status: 400,
      body: { error: { type: "invalid_request_error", message: expect.stringContaining(words) } },
    })
    expect(upstream.requests).toHaveLength(0)
  })

  test("writes errors before the request is read like Anthropic's API", async () => {
    const { ask, gateway } = await start([], { key: "sesame" })
    expect(await ask({})).toMatchObject({ status: 401, body: { error: { type: "authentication_error" } } })
    const response = await fetch(`${gateway.url}/messages`, {
      method: "POST",
      headers: { "x-api-key": "sesame" },
      body: "{}",
    })
    expect([response.status, await response.json()]).toMatchObject([415, { type: "error" }])
  })

  test("ends an interrupted stream with an error event", async () => {
    const failures: string[] = []
    const { stream } = await start([{ text: "Some words in pieces.", pieceSize: 3, fault: "cut" }], {
      onFailure: (text) => failures.push(text),
    })
    const events = await stream({ tools: [read] })
    expect(events.at(-1)).toMatchObject({
      type: "error",
      error: { type: "api_error", message: expect.any(String) },
    })
    expect(failures).toEqual([expect.stringMatching(/^POST \/v1\/messages\?beta=true: 502 /)])
  })

  test("fails for a call that is not a JSON object, unless the output limit truncated it", async () => {
    const broken = '<tool_call>\n{"name": "read", "arguments": {"path": "a", "b": [}'
    const { ask, stream } = await start(() => ({ text: broken }))
    expect(await ask({ tools: [read] })).toMatchObject({
      status: 502,
      body: { error: { type: "api_error" } },
    })
    expect((await stream({ tools: [read] })).at(-1)?.type).toBe("error")
    const cut = await start(() => ({ text: broken, finish: "length" }))
    expect((await cut.ask({ tools: [read] })).body.stop_reason).toBe("max_tokens")
    expect((await cut.stream({ tools: [read] })).slice(-3)).toMatchObject([
      { type: "content_block_stop" },
      { type: "message_delta", delta: { stop_reason: "max_tokens" } },
      { type: "message_stop" },
    ])
  })
})

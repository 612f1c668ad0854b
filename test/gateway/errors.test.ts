import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { describe, expect, onTestFinished, test } from "vitest"
import { startModelServer } from "../../src/testing/model-server.ts"
import { called, collect, failure, gatewayFor, messages, setUp, tools } from "./start-gateway.ts"

describe("gateway: upstream errors", () => {
  test.each(["native", "synthetic"] as const)(
    "keeps what the upstream says about an error (%s)",
    async (policy) => {
      const said = { message: "Slow down.", type: "tokens", code: "rate_limit_exceeded", param: "messages" }
      const { client } = await setUp(
        [{ status: 429, body: JSON.stringify({ error: said }), headers: { "retry-after": "7" } }],
        { policy },
      )
      const error = await failure(client.chat.completions.create({ model: "m", messages, tools }))
      expect(error).toMatchObject({
        status: 429,
        type: "tokens",
        code: "rate_limit_exceeded",
        param: "messages",
      })
      expect(error.message).toContain("Slow down.")
      expect(error.headers?.get("retry-after")).toBe("7")
    },
  )

  test("describes an error without details by its status", async () => {
    const { client } = await setUp([{ status: 429, body: '{"detail": "Slow down."}' }])
    const error = await failure(client.chat.completions.create({ model: "m", messages, tools }))
    expect(error).toMatchObject({ status: 429, type: "rate_limit_error", code: "upstream_error" })
    expect(error.message).toContain("Slow down.")
  })

  test("keeps the upstream's error in the middle of a stream", async () => {
    const said = { message: "Broken.", type: "engine", code: "engine_failed" }
    const body = `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: "a" } }] })}\n\ndata: ${JSON.stringify({ error: said })}\n\n`
    const { client } = await setUp([{ body, headers: { "content-type": "text/event-stream" } }])
    expect(await failure(collect(client, {}))).toMatchObject({ type: "engine", code: "engine_failed" })
  })

  test.each([
    ["html", false],
    ["html", true],
    ["garbage", false],
    ["cut", false],
    ["reset", true],
    ["no-finish", true],
    ["cut", true],
  ] as const)("by %s, streamed %s: an error, and no answer that looks complete", async (fault, stream) => {
    const { client } = await setUp([{ text: "Some words in many pieces.", pieceSize: 3, fault }])
    const error = await failure(
      stream ? collect(client, {}) : client.chat.completions.create({ model: "m", messages, tools }),
    )
    expect(error.type).toBe("server_error")
  })

  test.each(["native", "synthetic"] as const)(
    "by only empty events (%s): an error at the time limit",
    async (policy) => {
      const server = createServer((_, response) => {
        response.writeHead(200, { "content-type": "text/event-stream" })
        const empty = { choices: [{ index: 0, delta: { content: "" }, finish_reason: null }] }
        const timer = setInterval(() => response.write(`: wait\n\ndata: ${JSON.stringify(empty)}\n\n`), 5)
        response.on("close", () => clearInterval(timer))
      })
      await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening))
      onTestFinished(() => void server.close())
      const { port } = server.address() as AddressInfo
      const { client } = await gatewayFor(`http://127.0.0.1:${port}/v1`, { silenceMs: 200, policy })
      await expect(collect(client, {})).rejects.toThrow()
      // The gateway has closed its connection to the upstream.
      await new Promise((closed) => server.close(closed))
    },
  )

  test.each([true, false])("by silence, streamed %s: an error at the time limit", async (stream) => {
    const { client } = await setUp([{ fault: "hang" }], { silenceMs: 50 })
    const asked = stream
      ? collect(client, {})
      : client.chat.completions.create({ model: "m", messages, tools })
    expect(await failure(asked)).toMatchObject({ status: 504, code: "upstream_timeout" })
  })

  test("answers 502 if the upstream cannot be reached", async () => {
    const gone = await startModelServer({ script: [] })
    await gone.close()
    const { client } = await gatewayFor(gone.url)
    const asked = client.chat.completions.create({ model: "m", messages, tools })
    expect(await failure(asked)).toMatchObject({ status: 502, code: "upstream_unreachable" })
    expect((await failure(client.models.list())).status).toBe(502)
  })
})

describe("gateway: a streamed call that needs repair", () => {
  const long = "word ".repeat(500)
  const write = (content: string, rest: string) =>
    `<tool_call>\n{"name": "write", "arguments": {"path": "a", "content": "${content}${rest}\n</tool_call>`

  test.each([
    ["words of Python", write(long, '", "all": True}}'), { content: long, all: true }],
    [
      "quotes that are not escaped",
      write(long, 'say "hi" now", "b": 1}}'),
      { content: `${long}say "hi" now`, b: 1 },
    ],
    ["a raw line break", write(long, 'one\ntwo"}}'), { content: `${long}one\ntwo` }],
    ["a missing bracket", write(long, '", "b": [1]'), { content: long, b: [1] }],
    ["a comma too many", write(long, '",},}'), { content: long }],
    ["quotes of Python", write(long, '"}}').replaceAll('"', "'"), { content: long }],
  ])("streams the arguments up to %s, and then the repaired rest", async (_, text, input) => {
    const { client } = await setUp(() => ({ text, pieceSize: 40 }))
    const { calls, finish } = await collect(client, {})
    expect(calls.map(({ arguments: given }) => JSON.parse(given))).toEqual([{ path: "a", ...input }])
    expect(finish).toEqual(["tool_calls"])
    const whole = await client.chat.completions.create({ model: "m", messages, tools })
    const [call] = whole.choices[0]?.message.tool_calls ?? []
    const given = call?.type === "function" ? call.function.arguments : ""
    expect(JSON.parse(given)).toEqual({ path: "a", ...input })
  })

  test("asks the model again if a short call is malformed", async () => {
    const broken = '<tool_call>\n{"name": "read", "arguments": {"path": "a", "b": [}'
    const { client } = await setUp([{ text: broken, pieceSize: 5 }, { text: called("b") }])
    const { calls } = await collect(client, {})
    expect(calls.map((call) => JSON.parse(call.arguments))).toEqual([{ path: "b" }])
  })

  test("continues a partly sent call with the repeated one if it begins the same way", async () => {
    const broken = write(long, '", "b": }}')
    const { client } = await setUp([{ text: broken, pieceSize: 40 }, { text: write(long, '", "b": 2}}') }])
    const { calls } = await collect(client, {})
    expect(calls.map((call) => JSON.parse(call.arguments))).toEqual([{ path: "a", content: long, b: 2 }])
  })

  test("ends the stream with an error if the repeated call begins differently", async () => {
    const broken = write(long, '", "b": }}')
    const { client } = await setUp([{ text: broken, pieceSize: 40 }, { text: write("x", '"}}') }])
    expect(await failure(collect(client, {}))).toMatchObject({ code: "malformed_call" })
  })
})

test("breaks off a passed-through answer when the upstream does", async () => {
  const { client } = await setUp([{ text: "Some words.", pieceSize: 2, pieceDelayMs: 1, fault: "cut" }], {
    policy: "native",
  })
  await expect(collect(client, {})).rejects.toThrow()
})

test("ends the upstream request when the client disconnects", async () => {
  const { promise: gone, resolve } = Promise.withResolvers<void>()
  const upstream = createServer((_, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" })
    response.write(`data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: "One." } }] })}\n\n`)
    response.once("close", resolve)
  })
  await new Promise<void>((listening) => upstream.listen(0, "127.0.0.1", listening))
  onTestFinished(() => void upstream.close())
  const address = upstream.address()
  const port = typeof address === "object" ? address?.port : 0
  const { client } = await gatewayFor(`http://127.0.0.1:${port}/v1`)
  const stream = await client.chat.completions.create({ model: "m", messages, tools, stream: true })
  for await (const _chunk of stream) break
  await gone
})

test("names the invalid field of a request", async () => {
  const { client } = await setUp([])
  const asked = client.chat.completions.create({ model: "m", messages: [{ role: "user" } as never], tools })
  expect(await failure(asked)).toMatchObject({ status: 400, param: "messages.0.content" })
  expect((await failure(client.embeddings.create({ model: "m", input: "x" }))).status).toBe(404)
})

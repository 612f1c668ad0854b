import { once } from "node:events"
import type { ServerResponse } from "node:http"
import { afterEach, describe, expect, test } from "vitest"
import { guardAnswers } from "../../src/model/answer-guard.ts"
import { chunk, startServer, type TestServer } from "./server.ts"

const servers: TestServer[] = []

afterEach(async () => {
  for (const server of servers.splice(0)) await server[Symbol.asyncDispose]()
})

/** Returns the guarded answer of a server that answers by `respond`. */
async function ask(
  respond: (response: ServerResponse) => void | Promise<void>,
  limits: Parameters<typeof guardAnswers>[1] = {},
) {
  const server = await startServer(respond)
  servers.push(server)
  return { server, response: await guardAnswers(fetch, limits)(server.origin) }
}

const event = (value: object) => `data: ${JSON.stringify(value)}\n\n`
const events = { "content-type": "text/event-stream" }

describe("the guard of answers", () => {
  test("passes an answer through unchanged", async () => {
    const text = `: comment\n${event(chunk({ content: "é 👍" }))}${event(chunk({}, "stop"))}data: [DONE]\n\n`
    const { response } = await ask((answer) => void answer.writeHead(200, events).end(text))
    expect(await response.text()).toBe(`${text}\n\n`)
    const { response: json } = await ask((answer) => void answer.end('{"a": "é"}'))
    expect(await json.json()).toEqual({ a: "é" })
  })

  test("rejects a line that is too long, and closes the connection", async () => {
    const { server, response } = await ask(
      async (answer) => {
        answer.writeHead(200, events).write("data: ")
        const piece = "x".repeat(65_536)
        const closed = once(answer, "close")
        while (!answer.destroyed) {
          if (answer.write(piece)) await new Promise(setImmediate)
          else await Promise.race([once(answer, "drain"), closed])
        }
      },
      { lineBytes: 2 ** 20 },
    )
    await expect(response.text()).rejects.toThrow("a line of more than 1 MiB")
    await server.abandoned
  })

  test("rejects a body that is too long, even if it is not a stream", async () => {
    for (const headers of [events, { "content-type": "application/json" }]) {
      const body = "data: {}\n\n".repeat(200_000)
      const { response } = await ask((answer) => void answer.writeHead(200, headers).end(body), {
        bodyBytes: 2 ** 20,
      })
      await expect(response.text()).rejects.toThrow("an answer of more than 1 MiB")
    }
  })

  test("ends a stream that is silent after its finish reason", async () => {
    const text = event(chunk({ content: "a" })) + event(chunk({}, "stop"))
    const { server, response } = await ask((answer) => void answer.writeHead(200, events).write(text), {
      closingMs: 20,
    })
    expect(await response.text()).toContain('"stop"')
    await server.abandoned
  })

  test("does not end a stream that mentions a finish reason in its text", async () => {
    const first = event(chunk({ content: '"finish_reason": "stop"' }))
    const { promise: later, resolve } = Promise.withResolvers<void>()
    const { response } = await ask(
      async (answer) => {
        answer.writeHead(200, events).write(first)
        await later
        answer.end(event(chunk({ content: "more" })))
      },
      { closingMs: 1 },
    )
    const text = response.text()
    setTimeout(resolve, 100)
    expect(await text).toContain("more")
  })

  test("drops an incomplete event", async () => {
    const text = event(chunk({ content: "a" }))
    const { response } = await ask((answer) => void answer.writeHead(200, events).end(`${text}data: {"cho`))
    expect(await response.text()).toBe(text)
  })

  test.each([
    ["texts", ["a", '"b" ', "\\n\u00e9"], (content: string) => chunk({ content })],
    ["reasoning", ["a", "b"], (text: string) => chunk({ content: null, reasoning_content: text })],
    [
      "arguments",
      ['{"a"', ": 1}"],
      (text: string) => chunk({ tool_calls: [{ index: 0, function: { arguments: text } }] }),
    ],
    [
      "texts of the Messages API",
      ["a", "b"],
      (text: string) => ({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text } }),
    ],
  ])("joins %s that arrive together", async (_, texts, eventOf) => {
    const sent = texts.map((text) => event(eventOf(text))).join("")
    const { response } = await ask((answer) => void answer.writeHead(200, events).end(sent), {
      joinedLength: 1_000,
    })
    expect((await response.text()).trim()).toBe(event(eventOf(texts.join(""))).trim())
  })

  test.each([
    [
      "blocks",
      [
        { index: 0, delta: { text: "a" } },
        { index: 1, delta: { text: "b" } },
      ],
    ],
    ["fields", [chunk({ content: "a" }), chunk({ reasoning: "b" })]],
    [
      "usage",
      [1, 2].map((completion_tokens) => ({ ...chunk({ content: "a" }), usage: { completion_tokens } })),
    ],
    ["texts beside each other", [1, 2].map(() => chunk({ content: "a", reasoning: "b" }))],
    ["messages", [1, 2].map(() => ({ choices: [{ index: 0, message: { content: "a" } }] }))],
    ["ends", [chunk({ content: "a" }), chunk({ content: "b" }, "stop")]],
  ])("does not join events with different %s", async (_, values) => {
    const sent = values.map(event).join("")
    const { response } = await ask((answer) => void answer.writeHead(200, events).end(sent), {
      joinedLength: 1_000,
    })
    expect((await response.text()).trim()).toBe(sent.trim())
  })
})

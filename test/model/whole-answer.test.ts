import { expect, test } from "vitest"
import { guardAnswers } from "../../src/model/answer-guard.ts"
import { alwaysStreamed } from "../../src/model/chat-completions.ts"

/** Returns the events of an answer with this body. */
async function streamOf(
  body: string,
  init: ResponseInit = { headers: { "content-type": "application/json" } },
  around: (ask: typeof fetch) => typeof fetch = (ask) => ask,
) {
  return await new Response(
    (
      await alwaysStreamed(around(async () => new Response(body, init)))("http://x", {
        body: '{"stream":true}',
      })
    ).body,
  ).text()
}

test("converts a completion to one event", async () => {
  const call = (id: string, given: unknown) => ({
    id,
    type: "function",
    function: { name: "read", arguments: given },
  })
  const body = JSON.stringify({
    id: "c",
    choices: [
      {
        index: 0,
        message: {
          role: "assistant",
          content: null,
          tool_calls: [call("a", "{}"), call("b", { path: "x" })],
        },
        finish_reason: "tool_calls",
      },
    ],
    usage: { prompt_tokens: 3 },
  })
  const [event, end] = (await streamOf(body, undefined, guardAnswers)).split("\n\n")
  expect(end).toBe("data: [DONE]")
  expect(JSON.parse(event?.slice("data: ".length) ?? "")).toEqual({
    id: "c",
    choices: [
      {
        index: 0,
        finish_reason: "tool_calls",
        delta: {
          role: "assistant",
          content: null,
          tool_calls: [
            { index: 0, ...call("a", "{}") },
            { index: 1, ...call("b", '{"path":"x"}') },
          ],
        },
      },
    ],
    usage: { prompt_tokens: 3 },
  })
})

test("keeps an error in a body with status 200", async () => {
  expect(await streamOf('{"error":{"message":"no"}}')).toBe(
    'data: {"error":{"message":"no"}}\n\ndata: [DONE]\n\n',
  )
})

test.each([
  ["no JSON", "hello", undefined],
  ["no completion", '{"hello":1}', undefined],
  [
    "a refusal",
    '{"error":{"message":"no"}}',
    { status: 400, headers: { "content-type": "application/json" } },
  ],
  ["a stream", "data: {}\n\n", { headers: { "content-type": "text/event-stream" } }],
])("%s is left as it is", async (_, body, init) => {
  expect(await streamOf(body, init)).toBe(body)
})

test("does not change the answer to a request without stream", async () => {
  const body = JSON.stringify({ choices: [{ index: 0, message: { content: "hi" } }] })
  const answer = new Response(body, { headers: { "content-type": "application/json" } })
  expect(await alwaysStreamed(async () => answer)("http://x", { body: '{"stream":false}' })).toBe(answer)
  expect(await alwaysStreamed(async () => answer)("http://x", { body: "{}" })).toBe(answer)
})

import { describe, expect, onTestFinished, test } from "vitest"
import type { ProviderConfig } from "../../src/model/model.ts"
import { type Script, startModelServer } from "../../src/testing/model-server.ts"
import { dataEvent, type WireFormat } from "../../src/testing/wire-format.ts"
import { startEngine } from "./engine.ts"
import { run } from "./run.ts"

/** The part of Google's API that streams a text. */
const google: WireFormat = {
  accepts: (_, path) => path.includes(":streamGenerateContent"),
  streams: () => true,
  events: ({ text = "", finish = "STOP" }) => ({
    content: [dataEvent({ candidates: [{ content: { role: "model", parts: [{ text }] } }] })],
    ending: [
      dataEvent({
        candidates: [
          {
            content: { role: "model", parts: [] },
            finishReason: finish === "length" ? "MAX_TOKENS" : finish,
          },
        ],
        usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
      }),
    ],
  }),
  whole: () => "{}",
  error: (message) => JSON.stringify({ error: { message } }),
}

const providers: Record<string, ProviderConfig> = {
  compatible: {},
  chat: { npm: "@ai-sdk/openai", api: "chat" },
  responses: { npm: "@ai-sdk/openai", api: "responses" },
  anthropic: { npm: "@ai-sdk/anthropic" },
  google: { npm: "@ai-sdk/google" },
}

async function start(provider: string, script: Script) {
  const server = await startModelServer({ script, formats: [google] })
  onTestFinished(server.close)
  const options = { baseURL: server.url, apiKey: "k" }
  const engine = await startEngine([], {
    model: `${provider}/m`,
    providers: { [provider]: { ...providers[provider], options, models: { m: {} } } },
    files: { "a.txt": "x" },
  })
  onTestFinished(() => engine[Symbol.asyncDispose]())
  return { server, engine }
}

describe("an answer that ended early", () => {
  test.each([
    ["compatible", "content_filter", "content filter"],
    ["compatible", "error", "error on the server"],
    ["compatible", "network_error", "error on the server"],
    ["compatible", "insufficient_system_resource", "error on the server"],
    ["compatible", "safety", "content filter"],
    ["compatible", "RECITATION", "content filter"],
    ["compatible", "sensitive", "content filter"],
    ["compatible", "no_such_reason", "no_such_reason"],
    ["chat", "content_filter", "content filter"],
    ["responses", "content_filter", "content filter"],
    ["responses", "lost_interest", "lost_interest"],
    ["anthropic", "refusal", "content filter"],
    ["google", "SAFETY", "content filter"],
    ["google", "SPII", "content filter"],
    ["google", "MALFORMED_FUNCTION_CALL", "error on the server"],
    ["google", "LANGUAGE", "LANGUAGE"],
  ])("makes the run incomplete (%s, %s)", async (provider, finish, reason) => {
    const { engine } = await start(provider, [{ text: "Half.", finish }])
    const { end, events, session } = await run(engine)
    expect(end).toMatchObject({ status: "incomplete", exitCode: 3, text: "Half." })
    const error = { name: "incomplete", message: expect.stringContaining(reason) }
    expect(events).toContainEqual(expect.objectContaining({ type: "session.error", error }))
    expect((await session.messages()).at(-1)?.message).toMatchObject({ error, rawFinish: expect.anything() })
  })

  test.each([
    ["compatible", "length"],
    ["compatible", "max_tokens"],
    ["compatible", "model_context_window_exceeded"],
    ["chat", "length"],
    ["responses", "length"],
    ["anthropic", "length"],
    ["anthropic", "model_context_window_exceeded"],
    ["google", "length"],
  ])("at the output limit is continued once (%s, %s)", async (provider, finish) => {
    const { engine, server } = await start(provider, [{ text: "One, tw", finish }, { text: "o, three." }])
    const { end, session } = await run(engine)
    expect(end).toMatchObject({ status: "completed", exitCode: 0, text: "One, two, three." })
    expect(JSON.stringify(server.requests[1]?.body)).toContain("Continue with the next character")
    const notices = (await session.messages()).flatMap(({ parts }) =>
      parts.flatMap((part) => (part.type === "retry" ? [part.error] : [])),
    )
    expect(notices).toEqual([expect.stringContaining("output limit")])
  })

  test("at the output limit twice is incomplete, with both texts", async () => {
    const { engine, server } = await start("compatible", [
      { text: "One, ", finish: "length" },
      { text: "two, ", finish: "length" },
    ])
    const { end } = await run(engine)
    expect(end).toMatchObject({ status: "incomplete", exitCode: 3, text: "One, two, " })
    expect(server.requests).toHaveLength(2)
  })

  test("can be continued by the next prompt", async () => {
    const { engine } = await start("compatible", [
      { text: "Half", finish: "content_filter" },
      { text: "Whole." },
    ])
    const { session } = await run(engine)
    expect((await run(engine, { session })).end).toMatchObject({ status: "completed", text: "Whole." })
  })

  test("in a subagent is reported to the model", async () => {
    const task = { description: "look", prompt: "Look.", subagent_type: "explore" }
    const { engine, server } = await start("compatible", [
      { calls: [{ name: "task", arguments: task }] },
      { text: "Half", finish: "content_filter" },
      { text: "Done." },
    ])
    expect((await run(engine)).end.status).toBe("completed")
    expect(JSON.stringify(server.requests[2]?.body.messages)).toMatch(/did not finish\. .*content filter/)
  })

  test.each(["stop", "end_turn", "eos", "EOS_TOKEN", "stop_sequence"])(
    "is not one that ended with %s",
    async (finish) => {
      const { engine } = await start("compatible", [{ text: "Whole.", finish }])
      expect((await run(engine)).end).toMatchObject({ status: "completed", exitCode: 0 })
    },
  )
})

describe("an answer without text", () => {
  const empty = [
    ["an empty answer", {}],
    ["a blank answer", { text: " \n" }],
    ["reasoning only", { reasoning: "I think." }],
    ["a malformed call only", { finish: "MALFORMED_FUNCTION_CALL" }],
  ] as const
  test.each(
    Object.keys(providers).flatMap((provider) => empty.map(([name, reply]) => ({ provider, name, reply }))),
  )("is requested again ($provider, $name)", async ({ provider, reply }) => {
    const finish = "finish" in reply && provider !== "google" ? {} : reply
    const { engine, server } = await start(provider, [finish, { text: "Here." }])
    expect((await run(engine)).end).toMatchObject({ status: "completed", exitCode: 0, text: "Here." })
    expect(JSON.stringify(server.requests[1]?.body)).toContain("contained no text and no tool call")
  })

  test("twice makes the run incomplete", async () => {
    const { engine, server } = await start("compatible", [{}, { reasoning: "Hm." }])
    const { end } = await run(engine)
    expect(end).toMatchObject({ status: "incomplete", exitCode: 3, text: "" })
    expect(server.requests).toHaveLength(2)
  })

  test("is requested again after each step with calls", async () => {
    const read = { calls: [{ name: "read", arguments: { filePath: "a.txt" } }] }
    const { engine } = await start("compatible", [{}, read, {}, { text: "Done." }])
    expect((await run(engine)).end).toMatchObject({ status: "completed", text: "Done." })
  })
})

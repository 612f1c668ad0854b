import { expect, onTestFinished, test } from "vitest"
import { openSqliteStore } from "../../src/store/sqlite.ts"
import { startModelServer } from "../../src/testing/model-server.ts"
import { temporaryProject } from "../../src/testing/project.ts"
import { startEngine } from "./engine.ts"

type Block = { type: string; [key: string]: unknown }

/** The events of an answer in Anthropic's format that contains these blocks. */
function answer(blocks: readonly Block[], stopReason: string): string {
  const event = (type: string, value: object) =>
    `event: ${type}\ndata: ${JSON.stringify({ type, ...value })}\n\n`
  const content = blocks.flatMap((block, index) => [
    event("content_block_start", { index, content_block: begun(block) }),
    ...deltas(block).map((delta) => event("content_block_delta", { index, delta })),
    event("content_block_stop", { index }),
  ])
  const usage = { input_tokens: 1, output_tokens: 1 }
  const message = { id: "msg_1", type: "message", role: "assistant", model: "m", content: [], usage }
  return [
    event("message_start", { message: { ...message, stop_reason: null, stop_sequence: null } }),
    ...content,
    event("message_delta", { delta: { stop_reason: stopReason, stop_sequence: null }, usage }),
    event("message_stop", {}),
  ].join("")
}

function begun(block: Block): Block {
  if (block.type === "thinking") return { type: "thinking", thinking: "", signature: "" }
  if (block.type === "text") return { type: "text", text: "" }
  return block.type === "tool_use" ? { ...block, input: {} } : block
}

function deltas(block: Block): object[] {
  switch (block.type) {
    case "thinking": {
      const text = block.thinking === "" ? [] : [{ type: "thinking_delta", thinking: block.thinking }]
      return [...text, { type: "signature_delta", signature: block.signature }]
    }
    case "text":
      return [{ type: "text_delta", text: block.text }]
    case "tool_use":
      return [{ type: "input_json_delta", partial_json: JSON.stringify(block.input) }]
    default:
      return []
  }
}

const first: Block[] = [
  { type: "redacted_thinking", data: "sealed-1" },
  { type: "thinking", thinking: "Hm.", signature: "signed-1" },
  { type: "text", text: "I read it." },
  { type: "thinking", thinking: "", signature: "signed-2" },
  { type: "redacted_thinking", data: "sealed-2" },
  { type: "tool_use", id: "toolu_1", name: "read", input: { filePath: "a.txt" } },
  { type: "thinking", thinking: "And b.", signature: "signed-3" },
  { type: "tool_use", id: "toolu_2", name: "read", input: { filePath: "b.txt" } },
]
const second: Block[] = [
  { type: "redacted_thinking", data: "sealed-3" },
  { type: "text", text: "Done." },
]

/** The blocks of an assistant message as they were sent, without the marks of the prompt cache. */
function sent(content: unknown): unknown {
  return (content as Block[]).map(({ cache_control: _, ...block }) => block)
}

/** The events of an answer in OpenAI's format that contains these output items. */
function response(items: readonly Block[]): string {
  const event = (type: string, value: object) => `data: ${JSON.stringify({ type, ...value })}\n\n`
  const events = items.flatMap((item, output_index) => [
    event("response.output_item.added", {
      output_index,
      item: { ...item, ...(item.summary ? { summary: [] } : {}) },
    }),
    ...((item.summary ?? []) as Block[]).flatMap((part, summary_index) => {
      const place = { item_id: item.id, output_index, summary_index }
      return [
        event("response.reasoning_summary_part.added", {
          ...place,
          part: { type: "summary_text", text: "" },
        }),
        event("response.reasoning_summary_text.delta", { ...place, delta: part.text }),
        event("response.reasoning_summary_part.done", { ...place, part }),
      ]
    }),
    ...(item.type === "message"
      ? [
          event("response.output_text.delta", {
            item_id: item.id,
            output_index,
            content_index: 0,
            delta: "Done.",
          }),
        ]
      : []),
    event("response.output_item.done", { output_index, item }),
  ])
  const usage = { input_tokens: 1, output_tokens: 1 }
  const head = { id: "resp_1", object: "response", created_at: 1, model: "m" }
  return [
    event("response.created", { response: head }),
    ...events,
    event("response.completed", { response: { ...head, status: "completed", output: items, usage } }),
  ].join("")
}

test("sends reasoning items back to OpenAI unchanged", async () => {
  const text = (value: string) => ({ type: "summary_text", text: value })
  const call = (id: string, filePath: string) => ({
    type: "function_call",
    id: `fc_${id}`,
    call_id: id,
    name: "read",
    arguments: JSON.stringify({ filePath }),
    status: "completed",
  })
  const items: Block[] = [
    { type: "reasoning", id: "rs_1", summary: [text("One."), text("Two.")], encrypted_content: "sealed-1" },
    call("c1", "a.txt"),
    { type: "reasoning", id: "rs_2", summary: [], encrypted_content: "sealed-2" },
    call("c2", "b.txt"),
  ]
  const done = {
    type: "message",
    id: "m_1",
    role: "assistant",
    content: [{ type: "output_text", text: "Done.", annotations: [] }],
  }
  const hidden = { type: "reasoning", id: "rs_3", summary: [], encrypted_content: "sealed-3" }
  const headers = { "content-type": "text/event-stream" }
  const script = [response(items), response([hidden, done]), response([done])].map((body) => ({
    body,
    headers,
  }))
  const server = await startModelServer({ script })
  const providers = { openai: { api: "responses" as const, options: { baseURL: server.url, apiKey: "k" } } }
  const options = { files: { "a.txt": "1\n", "b.txt": "2\n" }, providers, model: "openai/gpt-5" }
  await using engine = await startEngine([], options)
  const session = await engine.tackle.sessions.create()
  expect((await session.prompt("go").completed).status).toBe("completed")
  expect((await session.prompt("more").completed).status).toBe("completed")
  await server.close()
  const inputs = server.requests.map(({ body }) => body.input as Block[])
  const reasoning = inputs.map((input) => input.filter(({ type }) => type === "reasoning"))
  expect(reasoning[1]).toEqual([items[0], items[2]])
  expect(reasoning[2]).toEqual([items[0], items[2], hidden])
  const types = inputs[1]?.map(({ type }) => type).slice(-6)
  expect(types).toEqual([
    ...["reasoning", "function_call", "reasoning", "function_call"],
    ...["function_call_output", "function_call_output"],
  ])
})

test("sends thinking, redacted thinking and signatures back to Anthropic unchanged", async () => {
  const headers = { "content-type": "text/event-stream" }
  const script = [
    { body: answer(first, "tool_use"), headers },
    { body: answer(second, "end_turn"), headers },
    { body: answer([{ type: "text", text: "Fine." }], "end_turn"), headers },
  ]
  const server = await startModelServer({ script })
  const providers = {
    test: { npm: "@ai-sdk/anthropic", options: { baseURL: server.url, apiKey: "k" }, models: { m: {} } },
  }
  const data = await temporaryProject({})
  onTestFinished(() => data.remove())
  const store = await openSqliteStore(data.path("sessions.db"))
  await using engine = await startEngine([], { files: { "a.txt": "1\n", "b.txt": "2\n" }, providers, store })
  const session = await engine.tackle.sessions.create()
  expect((await session.prompt("go").completed).status).toBe("completed")
  expect((await session.prompt("more").completed).status).toBe("completed")
  await server.close()
  const requests = server.requests.map(({ body }) => body.messages.filter(({ role }) => role === "assistant"))
  expect(requests[1]?.map(({ content }) => sent(content))).toEqual([first])
  expect(requests[2]?.map(({ content }) => sent(content))).toEqual([first, second])
})

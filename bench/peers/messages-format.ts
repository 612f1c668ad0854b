import { argumentsText, callID, pieces, type Reply, usageOf } from "../../src/testing/reply.ts"
import type { Asked, EventStream, WireFormat } from "../../src/testing/wire-format.ts"
import { namedEvent } from "./named-event.ts"

/** Wire format of Anthropic's Messages API, with text and tool calls. */
export const messagesFormat: WireFormat = {
  accepts: (method, path) => method === "POST" && /^\/v1\/messages(\?|$)/.test(path),
  streams: (asked) => asked.body.stream === true,
  events,
  whole: (reply, asked) =>
    JSON.stringify({ ...head(reply, asked), content: blocks(reply, asked), ...stop(reply) }),
  error: (message) => JSON.stringify({ type: "error", error: { type: "invalid_request_error", message } }),
}

/**
 * Returns the position in the script: the number of answers with a call. Returns undefined for a request without tools.
 */
export function messagesTurn(body: Record<string, unknown>): number | undefined {
  if (!Array.isArray(body.tools) || body.tools.length === 0 || !Array.isArray(body.messages)) return undefined
  const messages: { content: string | { type: string }[] }[] = body.messages
  return messages.filter(
    ({ content }) => Array.isArray(content) && content.some((block) => block.type === "tool_use"),
  ).length
}

function events(reply: Reply, asked: Asked): EventStream {
  const start = namedEvent("message_start", {
    message: { ...head(reply, asked), content: [], stop_reason: null },
  })
  const content = blocks(reply, asked).flatMap((block, index) => [
    namedEvent("content_block_start", {
      index,
      content_block: block.type === "text" ? { ...block, text: "" } : { ...block, input: {} },
    }),
    ...deltas(block, reply.pieceSize).map((delta) => namedEvent("content_block_delta", { index, delta })),
    namedEvent("content_block_stop", { index }),
  ])
  const { output } = usageOf(reply, asked.bytes)
  const ending = [
    namedEvent("message_delta", { delta: stop(reply), usage: { output_tokens: output } }),
    namedEvent("message_stop", {}),
  ]
  return { content: [start, ...content], ending }
}

type Block = { type: "text"; text: string } | { type: "tool_use"; id: string; name: string; input: unknown }

function blocks(reply: Reply, asked: Asked): Block[] {
  const calls = (reply.calls ?? []).map((call, position): Block => {
    const id = `toolu_${callID(call, asked.index, position)}`
    return { type: "tool_use", id, name: call.name, input: JSON.parse(argumentsText(call)) }
  })
  return reply.text === undefined ? calls : [{ type: "text", text: reply.text }, ...calls]
}

function deltas(block: Block, pieceSize?: number): object[] {
  return block.type === "text"
    ? pieces(block.text, pieceSize).map((text) => ({ type: "text_delta", text }))
    : pieces(JSON.stringify(block.input), pieceSize).map((json) => ({
        type: "input_json_delta",
        partial_json: json,
      }))
}

function head(reply: Reply, asked: Asked) {
  const { input, output } = usageOf(reply, asked.bytes)
  const usage = { input_tokens: input, output_tokens: output }
  return { id: `msg_${asked.index}`, type: "message", role: "assistant", model: asked.body.model, usage }
}

function stop(reply: Reply) {
  return { stop_reason: reply.calls?.length ? "tool_use" : "end_turn", stop_sequence: null }
}

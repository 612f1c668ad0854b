import { argumentsText, callID, pieces, type Reply, usageOf } from "./reply.ts"
import { type Asked, type EventStream, namedEvent, type WireFormat } from "./wire-format.ts"

/** Anthropic's Messages API. A reply becomes blocks of thinking, text and tool use, in this order. */
export const messages: WireFormat = {
  accepts: (method, path) => method === "POST" && /^\/v1\/messages(\?|$)/.test(path),
  streams: (asked) => asked.body.stream === true,
  events,
  whole: (reply, asked) =>
    JSON.stringify({ ...head(reply, asked), content: blocks(reply, asked), ...stop(reply) }),
  error: (message) => JSON.stringify({ type: "error", error: { type: "invalid_request_error", message } }),
}

function events(reply: Reply, asked: Asked): EventStream {
  const start = namedEvent("message_start", {
    message: { ...head(reply, asked), content: [], stop_reason: null, stop_sequence: null },
  })
  const content = blocks(reply, asked).flatMap((block, index) => [
    namedEvent("content_block_start", { index, content_block: { ...block, ...emptied(block) } }),
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

type Block =
  | { type: "thinking"; thinking: string; signature: string }
  | { type: "text"; text: string }
  | { type: "tool_use"; id: string; name: string; input: unknown }

function blocks(reply: Reply, asked: Asked): Block[] {
  const { reasoning, text } = reply
  const thoughts: Block[] =
    reasoning === undefined
      ? []
      : [{ type: "thinking", thinking: reasoning, signature: `signed-${asked.index}` }]
  const calls = (reply.calls ?? []).map((call, position): Block => {
    const id = `toolu_${callID(call, asked.index, position)}`
    return { type: "tool_use", id, name: call.name, input: JSON.parse(argumentsText(call)) }
  })
  return [...thoughts, ...(text === undefined ? [] : [{ type: "text" as const, text }]), ...calls]
}

function emptied({ type }: Block): object {
  switch (type) {
    case "thinking":
      return { thinking: "", signature: "" }
    case "text":
      return { text: "" }
    case "tool_use":
      return { input: {} }
  }
}

function deltas(block: Block, pieceSize?: number): object[] {
  switch (block.type) {
    case "thinking":
      return [
        ...pieces(block.thinking, pieceSize).map((thinking) => ({ type: "thinking_delta", thinking })),
        { type: "signature_delta", signature: block.signature },
      ]
    case "text":
      return pieces(block.text, pieceSize).map((text) => ({ type: "text_delta", text }))
    case "tool_use":
      return pieces(JSON.stringify(block.input), pieceSize).map((json) => ({
        type: "input_json_delta",
        partial_json: json,
      }))
  }
}

function head(reply: Reply, asked: Asked) {
  const { input, output, cached } = usageOf(reply, asked.bytes)
  const usage = {
    input_tokens: input - (cached ?? 0),
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: cached ?? 0,
    output_tokens: output,
  }
  return { id: `msg_${asked.index}`, type: "message", role: "assistant", model: asked.body.model, usage }
}

function stop(reply: Reply) {
  const { finish = reply.calls?.length ? "tool_use" : "end_turn" } = reply
  const reason = finish === "length" ? "max_tokens" : finish
  return { stop_reason: reason, stop_sequence: null }
}

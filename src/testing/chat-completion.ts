import { isRecord } from "../util/json.ts"
import { argumentsText, callID, pieces, type Reply, type ScriptedUsage, usageOf } from "./reply.ts"
import { type Asked, dataEvent, type EventStream, type WireFormat } from "./wire-format.ts"

/**
 * The format of OpenAI's Chat Completions API. A tool call is streamed as an event with empty arguments, followed by
 * the arguments in pieces.
 */
export const chatCompletion: WireFormat = {
  accepts: (method, path) => method === "POST" && path === "/v1/chat/completions",
  streams: (asked) => asked.body.stream === true,
  events,
  whole,
  error: (message) =>
    JSON.stringify({ error: { message, type: "invalid_request_error", param: null, code: null } }),
}

function events(reply: Reply, asked: Asked): EventStream {
  const content = deltas(reply, asked.index).map((delta) => chunk(asked, delta, null))
  const ending = [chunk(asked, "{}", finishReason(reply))]
  if (wantsUsage(asked)) {
    ending.push(
      dataEvent({ ...head(asked, "chat.completion.chunk"), choices: [], usage: usage(reply, asked) }),
    )
  }
  return { content, ending: [...ending, "data: [DONE]\n\n"] }
}

function whole(reply: Reply, asked: Asked): string {
  const message = {
    role: "assistant",
    content: reply.calls ? (reply.text ?? null) : (reply.text ?? ""),
    reasoning_content: reply.reasoning,
    tool_calls: reply.calls?.map((call, position) => ({
      id: callID(call, asked.index, position),
      type: "function",
      function: { name: call.name, arguments: argumentsText(call) },
    })),
  }
  return JSON.stringify({
    ...head(asked, "chat.completion"),
    choices: [{ index: 0, message, finish_reason: finishReason(reply) }],
    usage: usage(reply, asked),
  })
}

/** Returns the `delta` objects of a stream as JSON strings. The first object contains the role. */
function deltas(reply: Reply, request: number): string[] {
  const said = [
    ...pieces(reply.reasoning ?? "", reply.pieceSize).map(
      (piece) => `{"reasoning_content":${JSON.stringify(piece)}}`,
    ),
    ...pieces(reply.text ?? "", reply.pieceSize).map((piece) => `{"content":${JSON.stringify(piece)}}`),
  ]
  const called = (reply.calls ?? []).flatMap((call, index) => {
    const id = callID(call, request, index)
    const opening = { index, id, type: "function", function: { name: call.name, arguments: "" } }
    return [
      `{"tool_calls":[${JSON.stringify(opening)}]}`,
      ...pieces(argumentsText(call), reply.pieceSize).map(
        (piece) => `{"tool_calls":[{"index":${index},"function":{"arguments":${JSON.stringify(piece)}}}]}`,
      ),
    ]
  })
  if (said.length > 0) return ['{"role":"assistant","content":""}', ...said, ...called]
  const [first, ...rest] = called
  if (first === undefined) return ['{"role":"assistant","content":""}']
  return [`{"role":"assistant","content":null,${first.slice(1)}`, ...rest]
}

/**
 * Returns one event of a stream. Concatenates strings instead of serializing objects, because a large call has tens of
 * thousands of events.
 */
function chunk(asked: Asked, delta: string, finish: string | null): string {
  const opening = JSON.stringify(head(asked, "chat.completion.chunk")).slice(0, -1)
  return `data: ${opening},"choices":[{"index":0,"delta":${delta},"finish_reason":${JSON.stringify(finish)}}]}\n\n`
}

function head(asked: Asked, object: string) {
  return {
    id: `chatcmpl-${asked.index}`,
    object,
    created: 1_730_303_400 + asked.index,
    model: asked.body.model ?? null,
  }
}

function finishReason(reply: Reply): string {
  return reply.finish ?? (reply.calls?.length ? "tool_calls" : "stop")
}

function wantsUsage(asked: Asked): boolean {
  const options = asked.body.stream_options
  return isRecord(options) && options.include_usage === true
}

function usage(reply: Reply, asked: Asked) {
  const { input, output, cached, reasoning }: ScriptedUsage = usageOf(reply, asked.bytes)
  return {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details: cached === undefined ? undefined : { cached_tokens: cached },
    completion_tokens_details: reasoning === undefined ? undefined : { reasoning_tokens: reasoning },
  }
}

import { argumentsText, callID, pieces, type Reply, type ScriptedCall, usageOf } from "./reply.ts"
import { type Asked, type EventStream, namedEvent, type WireFormat } from "./wire-format.ts"

/** OpenAI's Responses API. A reply becomes a reasoning item, a message, and function calls, in this order. */
export const responses: WireFormat = {
  accepts: (method, path) => method === "POST" && /^\/v1\/responses(\?|$)/.test(path),
  streams: (asked) => asked.body.stream === true,
  events,
  whole: (reply, asked) => JSON.stringify(responseOf(reply, asked, "completed")),
  error: (message) =>
    JSON.stringify({ error: { message, type: "invalid_request_error", param: null, code: null } }),
}

function events(reply: Reply, asked: Asked): EventStream {
  let sequence_number = 0
  const event = (type: string, data: object) =>
    namedEvent(type, { sequence_number: sequence_number++, ...data })
  const running = { response: responseOf({}, asked, "in_progress") }
  const opening = [event("response.created", running), event("response.in_progress", running)]
  const content = outputItems(reply, asked).flatMap((item, output_index) => [
    event("response.output_item.added", { output_index, item: { ...item, ...emptied(item) } }),
    ...contentOf(item, reply.pieceSize).map(({ type, ...data }) =>
      event(type, { item_id: item.id, output_index, ...data }),
    ),
    event("response.output_item.done", { output_index, item }),
  ])
  const status = reply.finish === undefined ? "completed" : "incomplete"
  const ending = [event(`response.${status}`, { response: responseOf(reply, asked, status) })]
  return { content: [...opening, ...content], ending }
}

type Item = ReturnType<typeof reasoning> | ReturnType<typeof message> | ReturnType<typeof functionCall>

function outputItems(reply: Reply, asked: Asked): Item[] {
  const thoughts = reply.reasoning === undefined ? [] : [reasoning(asked.index, reply.reasoning)]
  const texts = reply.text === undefined ? [] : [message(`msg_${asked.index}`, reply.text)]
  const calls = (reply.calls ?? []).map((call, position) =>
    functionCall(callID(call, asked.index, position), call),
  )
  return [...thoughts, ...texts, ...calls]
}

/** Returns a reasoning item. If the text is empty, the item has no summary, as for models that hide their reasoning. */
function reasoning(index: number, text: string) {
  return {
    type: "reasoning" as const,
    id: `rs_${index}`,
    summary: text === "" ? [] : [{ type: "summary_text" as const, text }],
    encrypted_content: `sealed-${index}`,
  }
}

function message(id: string, text: string) {
  const content = [{ type: "output_text" as const, text, annotations: [] as string[] }]
  return { type: "message" as const, id, role: "assistant", status: "completed", content }
}

function functionCall(call_id: string, call: ScriptedCall) {
  const { name, namespace } = call
  const type = "function_call" as const
  return {
    type,
    id: `fc_${call_id}`,
    call_id,
    name,
    namespace,
    arguments: argumentsText(call),
    status: "completed",
  }
}

function emptied({ type }: Item): object {
  switch (type) {
    case "reasoning":
      return { summary: [], encrypted_content: "" }
    case "message":
      return { content: [], status: "in_progress" }
    case "function_call":
      return { arguments: "", status: "in_progress" }
  }
}

/** Returns the events between the start and the end of an item, without the fields that identify the item. */
function contentOf(item: Item, pieceSize?: number): { type: string; [field: string]: unknown }[] {
  switch (item.type) {
    case "reasoning":
      return item.summary.flatMap((part, summary_index) => [
        {
          type: "response.reasoning_summary_part.added",
          summary_index,
          part: { type: "summary_text", text: "" },
        },
        ...pieces(part.text, pieceSize).map((delta) => ({
          type: "response.reasoning_summary_text.delta",
          summary_index,
          delta,
        })),
        { type: "response.reasoning_summary_text.done", summary_index, text: part.text },
        { type: "response.reasoning_summary_part.done", summary_index, part },
      ])
    case "message":
      return item.content.flatMap((part, content_index) => [
        { type: "response.content_part.added", content_index, part: { ...part, text: "" } },
        ...pieces(part.text, pieceSize).map((delta) => ({
          type: "response.output_text.delta",
          content_index,
          delta,
        })),
        { type: "response.output_text.done", content_index, text: part.text },
        { type: "response.content_part.done", content_index, part },
      ])
    case "function_call":
      return [
        ...pieces(item.arguments, pieceSize).map((delta) => ({
          type: "response.function_call_arguments.delta",
          delta,
        })),
        { type: "response.function_call_arguments.done", arguments: item.arguments },
      ]
  }
}

function responseOf(reply: Reply, asked: Asked, status: string) {
  const { input, output, cached = 0, reasoning: thought = 0 } = usageOf(reply, asked.bytes)
  return {
    id: `resp_${asked.index}`,
    object: "response",
    created_at: 1_730_303_400 + asked.index,
    status,
    error: null,
    incomplete_details:
      status === "incomplete"
        ? { reason: reply.finish === "length" ? "max_output_tokens" : reply.finish }
        : null,
    model: asked.body.model ?? null,
    output: outputItems(reply, asked),
    usage: {
      input_tokens: input,
      input_tokens_details: { cached_tokens: cached },
      output_tokens: output,
      output_tokens_details: { reasoning_tokens: thought },
      total_tokens: input + output,
    },
  }
}

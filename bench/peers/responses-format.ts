import { argumentsText, callID, pieces, type Reply, usageOf } from "../../src/testing/reply.ts"
import type { Asked, EventStream, WireFormat } from "../../src/testing/wire-format.ts"
import { namedEvent } from "./named-event.ts"

/** Wire format of OpenAI's streamed Responses API, with text and function calls. */
export const responsesFormat: WireFormat = {
  accepts: (method, path) => method === "POST" && path.startsWith("/v1/responses"),
  streams: () => true,
  events,
  whole: (reply, asked) => JSON.stringify(response(reply, asked, "completed")),
  error: (message) => JSON.stringify({ error: { message, type: "invalid_request_error" } }),
}

/**
 * Returns the position in the script: the number of groups of calls in the conversation. Returns undefined for a
 * request without tools.
 */
export function responsesTurn(body: Record<string, unknown>): number | undefined {
  if (!Array.isArray(body.tools) || body.tools.length === 0 || !Array.isArray(body.input)) return undefined
  const types = body.input.map((item: { type?: string }) => item.type ?? "message")
  return types.filter((type, at) => type === "function_call" && types[at - 1] !== "function_call").length
}

function events(reply: Reply, asked: Asked): EventStream {
  const items = outputItems(reply, asked)
  const content = items.flatMap((item, output_index) => [
    namedEvent("response.output_item.added", {
      output_index,
      item: { ...item, status: "in_progress", ...emptied(item) },
    }),
    ...deltas(item, output_index, reply.pieceSize),
    namedEvent("response.output_item.done", { output_index, item }),
  ])
  const created = namedEvent("response.created", { response: response({}, asked, "in_progress") })
  const completed = namedEvent("response.completed", { response: response(reply, asked, "completed") })
  return { content: [created, ...content], ending: [completed] }
}

type Item = ReturnType<typeof message> | ReturnType<typeof functionCall>

function outputItems(reply: Reply, asked: Asked): Item[] {
  const calls = (reply.calls ?? []).map((call, position) =>
    functionCall(callID(call, asked.index, position), call.name, argumentsText(call)),
  )
  return reply.text === undefined ? calls : [message(`msg_${asked.index}`, reply.text), ...calls]
}

function message(id: string, text: string) {
  const content = [{ type: "output_text" as const, text, annotations: [] as string[] }]
  return { type: "message" as const, id, role: "assistant", status: "completed", content }
}

function functionCall(call_id: string, name: string, text: string) {
  return {
    type: "function_call" as const,
    id: `fc_${call_id}`,
    call_id,
    name,
    arguments: text,
    status: "completed",
  }
}

function emptied(item: Item) {
  return item.type === "message" ? { content: [] } : { arguments: "" }
}

function deltas(item: Item, output_index: number, pieceSize?: number): string[] {
  const place = { item_id: item.id, output_index }
  if (item.type === "function_call") {
    return pieces(item.arguments, pieceSize).map((delta) =>
      namedEvent("response.function_call_arguments.delta", { ...place, delta }),
    )
  }
  const text = item.content[0]?.text ?? ""
  return pieces(text, pieceSize).map((delta) =>
    namedEvent("response.output_text.delta", { ...place, content_index: 0, delta }),
  )
}

function response(reply: Reply, asked: Asked, status: string) {
  const { input, output } = usageOf(reply, asked.bytes)
  const usage = {
    input_tokens: input,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: input + output,
  }
  const id = `resp_${asked.index}`
  return { id, object: "response", status, model: asked.body.model, output: outputItems(reply, asked), usage }
}

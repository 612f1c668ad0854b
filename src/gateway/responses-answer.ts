import { newId } from "../util/id.ts"
import type { Answer, AnswerBlock, AnswerEvent } from "./answer.ts"
import {
  type AnswerWriter,
  type ClientRequest,
  countTokens,
  customInput,
  namedEvent,
  readArguments,
} from "./api.ts"

/** A tool of a request. `name` is unique. `ownName` and `namespace` are the client's names. */
export interface ClientTool {
  kind: "function" | "custom" | "search"
  name: string
  ownName: string
  namespace: string | undefined
  description: string | null | undefined
  parameters: Record<string, unknown> | null | undefined
}

/** The parts of a request that its answer repeats. */
interface ResponseContext {
  request: Readonly<Json>
  call: ClientRequest["call"]
  /** The tools by their unique names. */
  tools: ReadonlyMap<string, ClientTool>
}

type Json = Record<string, unknown>
/** An item of the response. All events of the item contain its id. */
type Item = Json & { id: string; type: string }

/** Returns the answer as one response. */
export function wholeResponse(answer: Answer, context: ResponseContext): object {
  const output = answer.blocks.map((block) => itemOf(block, newItemId(block, context), context))
  return responseOf(newHead(context), ending(answer, output, context))
}

/** Creates a writer for the events of one response. */
export function createResponseWriter(context: ResponseContext): AnswerWriter {
  const head = newHead(context)
  const items: Item[] = []
  let sequence = 0

  function event(type: string, data: Json): string {
    return namedEvent({ type, sequence_number: sequence++, ...data })
  }

  /** Returns the events that come before the first item. */
  function opening(): string {
    if (sequence > 0) return ""
    const response = responseOf(head, { status: "in_progress" })
    return event("response.created", { response }) + event("response.in_progress", { response })
  }

  function writeBlock(given: Exclude<AnswerEvent, { type: "finish" }>): string {
    const { index: output_index, block } = given
    const known = items[output_index]
    const id = known?.id ?? newItemId(block, context)
    const item = given.type === "delta" && known ? known : itemOf(block, id, context)
    const place = { item_id: id, output_index }
    switch (given.type) {
      case "start": {
        items[output_index] = item
        const added = event("response.output_item.added", { output_index, item: begun(item) })
        return added + partEvents(item, "added", (type, data) => event(type, { ...place, ...data }))
      }
      case "delta": {
        const { delta } = given
        if (item.type === "custom_tool_call" || item.type === "tool_search_call") return ""
        return event(`response.${deltaName(item)}.delta`, { ...place, ...position(item), delta })
      }
      case "end": {
        items[output_index] = item
        const done = partEvents(item, "done", (type, data) => event(type, { ...place, ...data }))
        return done + event("response.output_item.done", { output_index, item })
      }
    }
  }

  return {
    write(given) {
      const first = opening()
      if (given.type !== "finish") return first + writeBlock(given)
      const state = ending(given.answer, items, context)
      return first + event(`response.${state.status}`, { response: responseOf(head, state) })
    },
    fail({ message, label }) {
      const error = { code: label, message }
      const first = opening()
      return first + event("response.failed", { response: responseOf(head, { status: "failed", error }) })
    },
  }
}

/** Returns the events that surround the deltas of an item. */
function partEvents(
  item: Item,
  state: "added" | "done",
  event: (type: string, data: Json) => string,
): string {
  const at = position(item)
  const isDone = state === "done"
  switch (item.type) {
    case "message": {
      const [part] = item.content as Json[]
      const text = isDone ? event("response.output_text.done", { ...at, text: part?.text, logprobs: [] }) : ""
      return (
        text + event(`response.content_part.${state}`, { ...at, part: isDone ? part : { ...part, text: "" } })
      )
    }
    case "reasoning": {
      const [part] = item.summary as Json[]
      const text = isDone ? event("response.reasoning_summary_text.done", { ...at, text: part?.text }) : ""
      const shown = isDone ? part : { ...part, text: "" }
      return text + event(`response.reasoning_summary_part.${state}`, { ...at, part: shown })
    }
    case "custom_tool_call": {
      const { input } = item
      if (!isDone) return ""
      return (
        event("response.custom_tool_call_input.delta", { delta: input }) +
        event("response.custom_tool_call_input.done", { input })
      )
    }
    case "tool_search_call":
      return ""
    default:
      return isDone
        ? event("response.function_call_arguments.done", { name: item.name, arguments: item.arguments })
        : ""
  }
}

function deltaName({ type }: Item): string {
  if (type === "message") return "output_text"
  return type === "reasoning" ? "reasoning_summary_text" : "function_call_arguments"
}

/** Returns the fields that identify the only part of an item. */
function position({ type }: Item): Json {
  if (type === "message") return { content_index: 0 }
  return type === "reasoning" ? { summary_index: 0 } : {}
}

/** Returns an item at its start. */
function begun(item: Item): Item {
  switch (item.type) {
    case "message":
      return { ...item, status: "in_progress", content: [] }
    case "reasoning":
      return { ...item, summary: [] }
    case "custom_tool_call":
      return { ...item, status: "in_progress", input: "" }
    case "tool_search_call":
      return { ...item, status: "in_progress" }
    default:
      return { ...item, status: "in_progress", arguments: "" }
  }
}

function itemOf(block: AnswerBlock, id: string, { tools }: ResponseContext): Item {
  switch (block.type) {
    case "reasoning":
      return { type: "reasoning", id, summary: [{ type: "summary_text", text: block.text }] }
    case "text": {
      const content = [{ type: "output_text", text: block.text, annotations: [], logprobs: [] }]
      return { type: "message", id, role: "assistant", status: "completed", content }
    }
    case "call": {
      const tool = tools.get(block.name)
      const call = {
        id,
        call_id: block.id,
        name: tool?.ownName ?? block.name,
        ...(tool?.namespace !== undefined && { namespace: tool.namespace }),
        status: "completed",
      }
      if (tool?.kind === "custom")
        return { type: "custom_tool_call", ...call, input: customInput(block.input) }
      if (tool?.kind === "search") {
        const { call_id, status } = call
        const given = readArguments(block.input)
        return { type: "tool_search_call", id, call_id, execution: "client", status, arguments: given }
      }
      return { type: "function_call", ...call, arguments: block.input || "{}" }
    }
  }
}

function newItemId(block: AnswerBlock, { tools }: ResponseContext): string {
  const id = newId("msg")
  switch (block.type) {
    case "text":
      return id
    case "reasoning":
      return id.replace(/^msg/, "rs")
    case "call":
      return id.replace(/^msg/, itemPrefixes[tools.get(block.name)?.kind ?? "function"])
  }
}

const itemPrefixes = { function: "fc", custom: "ctc", search: "tsc" }

/** Returns the fields that are the same in every state of a response. */
function newHead({ request }: ResponseContext): Json {
  return {
    id: newId("msg").replace(/^msg/, "resp"),
    object: "response",
    created_at: Math.floor(Date.now() / 1_000),
    model: request.model,
    instructions: request.instructions ?? null,
    max_output_tokens: request.max_output_tokens ?? null,
    metadata: {},
    parallel_tool_calls: request.parallel_tool_calls !== false,
    previous_response_id: null,
    store: false,
    temperature: request.temperature ?? null,
    text: request.text ?? { format: { type: "text" } },
    tool_choice: request.tool_choice ?? "auto",
    tools: request.tools ?? [],
    top_p: request.top_p ?? null,
    truncation: "disabled",
  }
}

/** The fields of a response that change. */
interface ResponseState {
  status: "in_progress" | "completed" | "incomplete" | "failed"
  output?: readonly Item[]
  usage?: object
  error?: object
  incomplete_details?: object
}

function responseOf(head: Json, state: ResponseState): object {
  return { ...head, error: null, incomplete_details: null, output: [], usage: null, ...state }
}

function ending(answer: Answer, output: readonly Item[], { call }: ResponseContext): ResponseState {
  const usage = writeUsage(answer, call)
  const reasons: Partial<Record<Answer["reason"], string>> = {
    length: "max_output_tokens",
    "content-filter": "content_filter",
  }
  const reason = reasons[answer.reason]
  if (reason === undefined) return { status: "completed", output, usage }
  return { status: "incomplete", output, usage, incomplete_details: { reason } }
}

function writeUsage(answer: Answer, call: ClientRequest["call"]): object {
  const { input, output, cached, reasoning } = countTokens(answer, call)
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: cached },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: reasoning },
    total_tokens: input + output,
  }
}

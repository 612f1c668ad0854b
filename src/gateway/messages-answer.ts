import { newId } from "../util/id.ts"
import { isRecord, parseJson } from "../util/json.ts"
import { type Answer, type AnswerBlock, malformedCall } from "./answer.ts"
import { type AnswerWriter, type ClientRequest, countTokens, inputTokens, namedEvent } from "./api.ts"
import { type GatewayErrorFields, tooLong } from "./errors.ts"

/** The parts of a request that its answer depends on. */
interface MessageContext {
  model: string
  call: ClientRequest["call"]
  /** Whether the client wants to see the model's thinking. */
  showsThinking: boolean
}

type Json = Record<string, unknown>

/**
 * Returns the error in the format of Anthropic's API. This format has no error codes, so clients recognize a prompt
 * that is too long by the text of the message.
 */
export function messagesErrorBody({ message, status, label }: GatewayErrorFields) {
  const text = label === tooLong ? `prompt is too long: ${message}` : message
  return { type: "error", error: { type: errorType(status), message: text } }
}

function errorType(status: number): string {
  const types: Record<number, string> = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
    529: "overloaded_error",
  }
  return types[status] ?? (status >= 500 ? "api_error" : "invalid_request_error")
}

/**
 * Returns the answer as one message. Throws `GatewayError` if the input of a call is not a JSON object, because a block
 * cannot contain any other value.
 */
export function wholeMessage(answer: Answer, context: MessageContext): object {
  const isCut = answer.reason === "length"
  const content = answer.blocks
    .filter((block) => isShown(block, context) && !(isCut && isMalformed(block)))
    .map(blockOf)
  return { ...newHead(context), content, ...stop(answer), usage: writeUsage(answer, context) }
}

/** Creates a writer for the events of one message. */
export function createMessageWriter(context: MessageContext): AnswerWriter {
  /** Index of each block in the message that the client receives, by its index in the answer. */
  const positions = new Map<number, number>()
  /**
   * Calls whose input is not a JSON object. They are reported as malformed only when the message ends, because the
   * output limit may have cut them off.
   */
  const malformed = new Map<number, string>()
  let begun = false

  function opening(): string {
    if (begun) return ""
    begun = true
    const usage = { ...noCache, input_tokens: inputTokens(context.call), output_tokens: 0 }
    const message = { ...newHead(context), content: [], stop_reason: null, stop_sequence: null, usage }
    return namedEvent({ type: "message_start", message })
  }

  return {
    write(event) {
      if (event.type === "finish") {
        const { answer } = event
        const [broken] = malformed.values()
        if (broken !== undefined && answer.reason !== "length") throw malformedCall(broken)
        return (
          opening() +
          [...malformed.keys()].map((index) => namedEvent({ type: "content_block_stop", index })).join("") +
          namedEvent({ type: "message_delta", delta: stop(answer), usage: writeUsage(answer, context) }) +
          namedEvent({ type: "message_stop" })
        )
      }
      const { block } = event
      if (!isShown(block, context)) return opening()
      const index = positions.get(event.index) ?? positions.size
      positions.set(event.index, index)
      switch (event.type) {
        case "start":
          return (
            opening() + namedEvent({ type: "content_block_start", index, content_block: begunBlock(block) })
          )
        case "delta":
          return namedEvent({ type: "content_block_delta", index, delta: deltaOf(block, event.delta) })
        case "end":
          if (block.type !== "call" || readInput(block.input) !== undefined)
            return namedEvent({ type: "content_block_stop", index })
          malformed.set(index, block.name)
          return ""
      }
    },
    fail: (error) => namedEvent(messagesErrorBody(error)),
  }
}

function isShown({ type }: AnswerBlock, { showsThinking }: MessageContext): boolean {
  return type !== "reasoning" || showsThinking
}

function begunBlock(block: AnswerBlock): Json {
  switch (block.type) {
    case "text":
      return { type: "text", text: "" }
    case "reasoning":
      return { type: "thinking", thinking: "", signature: "" }
    case "call":
      return { type: "tool_use", id: block.id, name: block.name, input: {} }
  }
}

function deltaOf(block: AnswerBlock, delta: string): Json {
  switch (block.type) {
    case "text":
      return { type: "text_delta", text: delta }
    case "reasoning":
      return { type: "thinking_delta", thinking: delta }
    case "call":
      return { type: "input_json_delta", partial_json: delta }
  }
}

function blockOf(block: AnswerBlock): Json {
  switch (block.type) {
    case "text":
      return { type: "text", text: block.text }
    case "reasoning":
      return { type: "thinking", thinking: block.text, signature: "" }
    case "call": {
      const input = readInput(block.input)
      if (input === undefined) throw malformedCall(block.name)
      return { type: "tool_use", id: block.id, name: block.name, input }
    }
  }
}

function isMalformed(block: AnswerBlock): boolean {
  return block.type === "call" && readInput(block.input) === undefined
}

function readInput(text: string): Json | undefined {
  const parsed = parseJson(text.trim() === "" ? "{}" : text)
  return parsed.ok && isRecord(parsed.value) ? parsed.value : undefined
}

function newHead({ model }: MessageContext): Json {
  return { id: newId("msg"), type: "message", role: "assistant", model }
}

function stop({ reason }: Answer): Json {
  const reasons: Partial<Record<Answer["reason"], string>> = {
    length: "max_tokens",
    "tool-calls": "tool_use",
    "content-filter": "refusal",
  }
  return { stop_reason: reasons[reason] ?? "end_turn", stop_sequence: null }
}

const noCache = { cache_creation_input_tokens: 0, cache_read_input_tokens: 0 }

function writeUsage(answer: Answer, { call }: MessageContext): Json {
  const { input, output, cached } = countTokens(answer, call)
  return {
    ...noCache,
    input_tokens: Math.max(0, input - cached),
    cache_read_input_tokens: cached,
    output_tokens: output,
  }
}

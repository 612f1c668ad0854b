import type { ModelAnswer, ModelPart, ModelUsage } from "../model/chat-completions.ts"
import { newId } from "../util/id.ts"
import { GatewayError } from "./errors.ts"

/** The fields of the request that affect the format of the answer. */
export interface AnswerOptions {
  /** The model name that the client sent. */
  model: string
  /** False if the client accepts at most one call. Further calls are then dropped. */
  parallel: boolean
  /** True if a stream ends with a chunk that contains the usage. */
  includeUsage: boolean
}

/** A chunk or a complete answer in OpenAI's format. */
type Json = Record<string, unknown>

/** Converts stream parts of a model to `chat.completion.chunk` objects. */
interface ChunkWriter {
  /** Returns the chunks of a part. Throws the error of an error part, and `GatewayError` if the answer cannot continue. */
  take(part: ModelPart): Json[]
  /** Ends the answer. Throws `GatewayError` if the answer has no finish reason. */
  end(): void
}

/** Creates a writer for one answer. All chunks of the answer share an id. */
export function createChunkWriter(options: AnswerOptions): ChunkWriter {
  const head = answerHead("chat.completion.chunk", options.model)
  const calls = new Map<string, { index: number; sent: string }>()
  let begun = false
  let finished = false

  function chunk(delta: Json, finish: string | null = null): Json {
    const role = begun ? {} : { role: "assistant", content: null }
    begun = true
    return { ...head, choices: [{ index: 0, delta: { ...role, ...delta }, finish_reason: finish }] }
  }

  function startCall(id: string, name: string): Json[] {
    const call = { index: calls.size, sent: "" }
    calls.set(id, call)
    if (isLeftOut(call.index)) return []
    const { index } = call
    return [chunk({ tool_calls: [{ index, id, type: "function", function: { name, arguments: "" } }] })]
  }

  function addArguments(id: string, piece: string): Json[] {
    const call = calls.get(id)
    if (call === undefined || piece === "") return []
    call.sent += piece
    if (isLeftOut(call.index)) return []
    return [chunk({ tool_calls: [{ index: call.index, function: { arguments: piece } }] })]
  }

  function isLeftOut(index: number): boolean {
    return index > 0 && !options.parallel
  }

  /**
   * Ends a call. Throws if the streamed pieces are not the beginning of its input, since the client must not execute
   * such a call.
   */
  function endCall({ toolCallId: id, toolName, input }: Extract<ModelPart, { type: "tool-call" }>): Json[] {
    const started = calls.has(id) ? [] : startCall(id, toolName)
    const sent = calls.get(id)?.sent ?? ""
    if (!input.startsWith(sent)) throw unreadableCall(toolName)
    return [...started, ...addArguments(id, input.slice(sent.length))]
  }

  return {
    take(part) {
      switch (part.type) {
        case "text-delta":
          return part.delta === "" ? [] : [chunk({ content: part.delta })]
        case "reasoning-delta":
          return part.delta === "" ? [] : [chunk({ reasoning_content: part.delta })]
        case "tool-input-start":
          return startCall(part.id, part.toolName)
        case "tool-input-delta":
          return addArguments(part.id, part.delta)
        case "tool-call":
          return endCall(part)
        case "error":
          throw part.error
        case "finish": {
          finished = true
          const last = chunk({}, finishReason(part.finishReason))
          const usage = options.includeUsage ? writeUsage(part.usage) : undefined
          return usage === undefined ? [last] : [last, { ...head, choices: [], usage }]
        }
        default:
          return []
      }
    },
    end() {
      if (!finished) throw brokenOff()
    },
  }
}

/** Returns the answer as one `chat.completion`. Throws `GatewayError` if the upstream's answer broke off. */
export function wholeAnswer(answer: ModelAnswer, options: AnswerOptions): Json {
  const texts: string[] = []
  const reasoning: string[] = []
  const calls: Json[] = []
  for (const part of answer.content) {
    if (part.type === "text") texts.push(part.text)
    else if (part.type === "reasoning") reasoning.push(part.text)
    else if (part.type === "tool-call" && (calls.length === 0 || options.parallel)) {
      const { toolCallId: id, toolName: name, input } = part
      calls.push({ id, type: "function", function: { name, arguments: input } })
    }
  }
  const text = texts.join("")
  const message = {
    role: "assistant",
    content: text === "" && calls.length > 0 ? null : text,
    refusal: null,
    reasoning_content: reasoning.join("") || undefined,
    tool_calls: calls.length > 0 ? calls : undefined,
  }
  return {
    ...answerHead("chat.completion", options.model),
    choices: [{ index: 0, message, logprobs: null, finish_reason: finishReason(answer.finishReason) }],
    usage: writeUsage(answer.usage),
  }
}

function answerHead(object: string, model: string): Json {
  return { id: `chatcmpl-${newId("msg")}`, object, created: Math.floor(Date.now() / 1_000), model }
}

/**
 * Returns the finish reason in OpenAI's format. Throws `GatewayError` if the upstream sent no reason, since the answer
 * is then incomplete.
 */
function finishReason({ unified, raw }: ModelAnswer["finishReason"]): string {
  switch (unified) {
    case "tool-calls":
      return "tool_calls"
    case "content-filter":
      return "content_filter"
    case "length":
    case "stop":
      return unified
    case "error":
    case "interrupted":
      throw brokenOff()
    default:
      if (raw === undefined) throw brokenOff()
      return raw
  }
}

/** Returns the usage in OpenAI's format, or undefined if the upstream sent no usage. */
function writeUsage({ inputTokens, outputTokens }: ModelUsage): Json | undefined {
  if (inputTokens.total === undefined && outputTokens.total === undefined) return undefined
  const [prompt, completion] = [inputTokens.total ?? 0, outputTokens.total ?? 0]
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details:
      inputTokens.cacheRead === undefined ? undefined : { cached_tokens: inputTokens.cacheRead },
    completion_tokens_details:
      outputTokens.reasoning === undefined ? undefined : { reasoning_tokens: outputTokens.reasoning },
  }
}

function brokenOff(): GatewayError {
  return new GatewayError("The upstream's answer ended early. Send the request again.", {
    status: 502,
    label: "upstream_broke_off",
  })
}

function unreadableCall(tool: string): GatewayError {
  return new GatewayError(
    `The model wrote a malformed call to ${tool}, and part of the call was already sent. Send the request again.`,
    { status: 502, label: "malformed_call" },
  )
}

import type { ModelAnswer, ModelPart, ModelUsage } from "../model/chat-completions.ts"
import { newId } from "../util/id.ts"
import { GatewayError } from "./errors.ts"

/** What of the request decides how its answer is written. */
export interface AnswerOptions {
  /** As the client named it. */
  model: string
  /** False: the client takes one call at most, and further ones are left out. */
  parallel: boolean
  /** Whether a stream ends with a chunk that holds the usage. */
  includeUsage: boolean
}

/** A chunk or a whole answer in OpenAI's format. */
type Json = Record<string, unknown>

/** Turns the parts of a model's stream into chunks of `chat.completion.chunk`. */
interface ChunkWriter {
  /** Throws what the part reports as an error, and `GatewayError` where an answer cannot be told as chunks. */
  take(part: ModelPart): Json[]
  /** Throws `GatewayError` where the answer ended before its finish reason. */
  end(): void
}

/** A writer for one answer. All its chunks have one id. */
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

  /** What was sent of a call cannot be taken back: if it is no beginning of the call, the client must not run it. */
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

/** The answer as one `chat.completion`. Throws `GatewayError` where the upstream's broke off. */
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
    ...(reasoning.length > 0 && { reasoning_content: reasoning.join("") }),
    ...(calls.length > 0 && { tool_calls: calls }),
  }
  const usage = writeUsage(answer.usage)
  return {
    ...answerHead("chat.completion", options.model),
    choices: [{ index: 0, message, logprobs: null, finish_reason: finishReason(answer.finishReason) }],
    ...(usage && { usage }),
  }
}

function answerHead(object: string, model: string): Json {
  return { id: `chatcmpl-${newId("msg")}`, object, created: Math.floor(Date.now() / 1_000), model }
}

/** A reason that the upstream did not give means that its answer is not whole. */
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

/** Undefined where the upstream counted nothing. */
function writeUsage({ inputTokens, outputTokens }: ModelUsage): Json | undefined {
  if (inputTokens.total === undefined && outputTokens.total === undefined) return undefined
  const [prompt, completion] = [inputTokens.total ?? 0, outputTokens.total ?? 0]
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    ...(inputTokens.cacheRead !== undefined && {
      prompt_tokens_details: { cached_tokens: inputTokens.cacheRead },
    }),
    ...(outputTokens.reasoning !== undefined && {
      completion_tokens_details: { reasoning_tokens: outputTokens.reasoning },
    }),
  }
}

function brokenOff(): GatewayError {
  return new GatewayError("The upstream's answer broke off before it was finished. Ask again.", {
    status: 502,
    label: "upstream_broke_off",
  })
}

function unreadableCall(tool: string): GatewayError {
  return new GatewayError(
    `The model wrote a call of ${tool} that could not be read, and part of it was sent already. Ask again.`,
    { status: 502, label: "malformed_call" },
  )
}

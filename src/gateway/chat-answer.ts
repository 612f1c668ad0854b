import type { ModelUsage } from "../model/chat-completions.ts"
import { newId } from "../util/id.ts"
import { type Answer, textOf } from "./answer.ts"
import { type AnswerWriter, customInput, dataEvent } from "./api.ts"
import { errorBody } from "./errors.ts"

/** A chunk or a complete answer. */
type Json = Record<string, unknown>

/** The parts of a request that its answer depends on. */
interface ChatContext {
  model: string
  /** Names of the custom tools, whose calls contain text instead of arguments. */
  custom: ReadonlySet<string>
}

/** Creates a writer for `chat.completion.chunk` events. All chunks of the answer share an id. */
export function createChunkWriter(options: ChatContext & { includeUsage: boolean }): AnswerWriter {
  const head = answerHead("chat.completion.chunk", options.model)
  /** Index of each call among the calls, by its index among all blocks of the answer. */
  const calls = new Map<number, number>()
  let begun = false

  function chunk(delta: Json, finish: string | null = null): string {
    const role = begun ? {} : { role: "assistant", content: null }
    begun = true
    return dataEvent({
      ...head,
      choices: [{ index: 0, delta: { ...role, ...delta }, finish_reason: finish }],
    })
  }

  return {
    write(event) {
      switch (event.type) {
        case "start": {
          if (event.block.type !== "call") return ""
          const { id, name } = event.block
          const index = calls.size
          calls.set(event.index, index)
          return chunk({ tool_calls: [{ index, id, ...callOf(name, "", options) }] })
        }
        case "delta": {
          const { block, delta } = event
          if (block.type === "text") return chunk({ content: delta })
          if (block.type === "reasoning") return chunk({ reasoning_content: delta })
          if (block.type === "call" && options.custom.has(block.name)) return ""
          return chunk({ tool_calls: [{ index: calls.get(event.index), function: { arguments: delta } }] })
        }
        case "end": {
          const { block } = event
          if (block.type !== "call" || !options.custom.has(block.name)) return ""
          const custom = { input: customInput(block.input) }
          return chunk({ tool_calls: [{ index: calls.get(event.index), custom }] })
        }
        case "finish": {
          const usage = options.includeUsage ? writeUsage(event.answer.usage) : undefined
          const last = usage === undefined ? "" : dataEvent({ ...head, choices: [], usage })
          return `${chunk({}, finishReason(event.answer))}${last}data: [DONE]\n\n`
        }
      }
    },
    fail: (error) => dataEvent(errorBody(error)),
  }
}

/** Returns the answer as one `chat.completion`. */
export function wholeAnswer(answer: Answer, context: ChatContext): object {
  const text = textOf(answer, "text")
  const calls = answer.blocks.filter((block) => block.type === "call")
  const message = {
    role: "assistant",
    content: text === "" && calls.length > 0 ? null : text,
    refusal: null,
    reasoning_content: textOf(answer, "reasoning") || undefined,
    tool_calls:
      calls.length > 0
        ? calls.map(({ id, name, input }) => ({ id, ...callOf(name, input, context) }))
        : undefined,
  }
  return {
    ...answerHead("chat.completion", context.model),
    choices: [{ index: 0, message, logprobs: null, finish_reason: finishReason(answer) }],
    usage: writeUsage(answer.usage),
  }
}

function callOf(name: string, input: string, { custom }: ChatContext): Json {
  return custom.has(name)
    ? { type: "custom", custom: { name, input: customInput(input) } }
    : { type: "function", function: { name, arguments: input } }
}

function answerHead(object: string, model: string): Json {
  return { id: `chatcmpl-${newId("msg")}`, object, created: Math.floor(Date.now() / 1_000), model }
}

function finishReason({ reason, rawReason }: Answer): string | undefined {
  switch (reason) {
    case "tool-calls":
      return "tool_calls"
    case "content-filter":
      return "content_filter"
    case "other":
      return rawReason
    default:
      return reason
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

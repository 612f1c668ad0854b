import * as z from "zod"
import type { ModelUsage } from "../model/chat-completions.ts"
import { newId } from "../util/id.ts"
import { type Answer, textOf } from "./answer.ts"
import {
  type AnswerWriter,
  assertChoice,
  type ClientApi,
  type ClientRequest,
  checked,
  customInput,
  customTool,
  dataEvent,
  functionTool,
  readArguments,
  readImage,
} from "./api.ts"
import { errorBody } from "./errors.ts"

/** The fields that the gateway reads in a request that it passes through. */
export const ChatRequest = z.looseObject({
  model: z.string().min(1),
  messages: z.array(z.unknown()).min(1),
  tools: z.array(z.unknown()).nullish(),
  stream: z.boolean().nullish(),
})

const Text = z.object({ type: z.literal("text"), text: z.string() })
const Refusal = z.object({ type: z.literal("refusal"), refusal: z.string() })
const Image = z.object({ type: z.literal("image_url"), image_url: z.object({ url: z.string() }) })

const spoken = z.union([z.string(), z.array(z.discriminatedUnion("type", [Text, Refusal]))])
const shown = z.union([z.string(), z.array(z.discriminatedUnion("type", [Text, Image]))])

const FunctionCall = z.object({
  id: z.string(),
  type: z.literal("function").optional(),
  function: z.object({ name: z.string().min(1), arguments: z.string() }),
})
const CustomCall = z.object({
  id: z.string(),
  type: z.literal("custom"),
  custom: z.object({ name: z.string().min(1), input: z.string() }),
})
const Call = z.union([CustomCall, FunctionCall])

const Message = z.discriminatedUnion("role", [
  z.object({ role: z.literal("system"), content: spoken }),
  z.object({ role: z.literal("developer"), content: spoken }),
  z.object({ role: z.literal("user"), content: shown }),
  z.object({ role: z.literal("assistant"), content: spoken.nullish(), tool_calls: z.array(Call).nullish() }),
  z.object({ role: z.literal("tool"), tool_call_id: z.string(), content: shown }),
])
type ChatMessage = z.infer<typeof Message>
/** Content of user and tool messages, which can contain images. */
type MixedContent = z.infer<typeof shown>
/** Content of assistant and system messages, which contain only text. */
type TextContent = z.infer<typeof spoken>

const FunctionTool = z.object({
  type: z.literal("function"),
  function: z.object({
    name: z.string().min(1),
    description: z.string().nullish(),
    parameters: z.record(z.string(), z.unknown()).nullish(),
  }),
})

const CustomTool = z.object({
  type: z.literal("custom"),
  custom: z.object({
    name: z.string().min(1),
    description: z.string().nullish(),
    format: z
      .object({
        grammar: z.object({ syntax: z.string().nullish(), definition: z.string().nullish() }).nullish(),
      })
      .nullish(),
  }),
})

const NamedTool = z.discriminatedUnion("type", [
  z.object({ type: z.literal("function"), function: z.object({ name: z.string() }) }),
  z.object({ type: z.literal("custom"), custom: z.object({ name: z.string() }) }),
])

/** The fields of a request that the gateway converts. Other fields are forwarded to the upstream unchanged. */
const TextRequest = z.looseObject({
  model: z.string(),
  messages: z.array(Message).min(1),
  tools: z.array(z.discriminatedUnion("type", [FunctionTool, CustomTool])).nullish(),
  tool_choice: z.union([z.enum(["auto", "none", "required"]), NamedTool]).nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  n: z.literal(1, "Must be 1, because the gateway converts the answers for this request.").nullish(),
  functions: z.undefined('Deprecated. Send "tools" instead.').optional(),
})
type TextRequest = z.infer<typeof TextRequest>

/** OpenAI's Chat Completions API, for requests that are not passed through. */
export const chatApi: ClientApi = {
  errorBody,
  read(body) {
    const request = checked(TextRequest, body)
    const call = toModelCall(request)
    assertChoice(call)
    const { model } = request
    const includeUsage = request.stream_options?.include_usage === true
    const custom = new Set(
      (request.tools ?? []).flatMap((tool) => (tool.type === "custom" ? tool.custom.name : [])),
    )
    return {
      model,
      stream: request.stream === true,
      parallel: request.parallel_tool_calls !== false,
      call,
      settings: otherSettings(request),
      whole: (answer) => wholeAnswer(answer, { model, custom }),
      writer: () => createChunkWriter({ model, custom, includeUsage }),
    }
  },
}

type Call = ClientRequest["call"]
type Prompt = Call["prompt"]

function toModelCall(request: TextRequest): Call {
  const call: Call = { prompt: toPrompt(request.messages) }
  const choice = request.tool_choice
  const tools = request.tools ?? []
  if (tools.length > 0)
    call.tools = tools.map((tool) => {
      if (tool.type === "custom")
        return customTool(tool.custom.name, tool.custom.description, tool.custom.format?.grammar)
      return functionTool(tool.function.name, tool.function.description, tool.function.parameters)
    })
  if (choice)
    call.toolChoice =
      typeof choice === "string"
        ? { type: choice }
        : { type: "tool", toolName: choice.type === "custom" ? choice.custom.name : choice.function.name }
  return call
}

/** Returns the request fields that the model call does not contain. */
function otherSettings(request: TextRequest): Record<string, unknown> {
  const {
    model: _model,
    messages: _messages,
    tools: _tools,
    tool_choice: _choice,
    parallel_tool_calls: _parallel,
    stream: _stream,
    stream_options: _options,
    ...rest
  } = request
  return rest
}

/** Converts messages. A result contains only the id of its call, so the name of the tool is taken from the call. */
function toPrompt(messages: readonly ChatMessage[]): Prompt {
  const calls = messages.flatMap((message) =>
    message.role === "assistant" ? (message.tool_calls ?? []) : [],
  )
  const names = new Map(calls.map((call) => [call.id, readCall(call).toolName]))
  return messages.map((message, index) => toMessage(message, names, `messages.${index}.content`))
}

/** Converts a message. `where` is the path of the message's content in the request. */
function toMessage(
  message: ChatMessage,
  toolNames: ReadonlyMap<string, string>,
  where: string,
): Prompt[number] {
  switch (message.role) {
    case "system":
    case "developer":
      return { role: "system", content: plainText(message.content) }
    case "user":
      return { role: "user", content: mixedParts(message.content, where) }
    case "assistant": {
      const text = plainText(message.content ?? "")
      const calls = (message.tool_calls ?? []).map(readCall)
      return {
        role: "assistant",
        content: text === "" ? calls : [{ type: "text", text }, ...calls],
      }
    }
    case "tool": {
      const { tool_call_id: toolCallId } = message
      const output = { type: "content" as const, value: mixedParts(message.content, where) }
      const toolName = toolNames.get(toolCallId) ?? "unknown"
      return { role: "tool", content: [{ type: "tool-result", toolCallId, toolName, output }] }
    }
  }
}

function readCall(call: z.infer<typeof Call>) {
  const [toolName, input] =
    call.type === "custom"
      ? [call.custom.name, { input: call.custom.input }]
      : [call.function.name, readArguments(call.function.arguments)]
  return { type: "tool-call" as const, toolCallId: call.id, toolName, input }
}

function plainText(content: TextContent): string {
  if (typeof content === "string") return content
  return content.map((part) => (part.type === "text" ? part.text : part.refusal)).join("")
}

function mixedParts(content: MixedContent, where: string) {
  const parts = typeof content === "string" ? [{ type: "text" as const, text: content }] : content
  return parts.map((part) =>
    part.type === "text" ? { type: "text" as const, text: part.text } : readImage(part.image_url.url, where),
  )
}

/** A JSON object. */
type Json = Record<string, unknown>

/** The parts of a request that its answer depends on. */
interface ChatContext {
  model: string
  /** Names of the custom tools, whose calls contain text instead of arguments. */
  custom: ReadonlySet<string>
}

/** Creates a writer for `chat.completion.chunk` events. All chunks of the answer share an id. */
function createChunkWriter(options: ChatContext & { includeUsage: boolean }): AnswerWriter {
  const head = answerHead("chat.completion.chunk", options.model)
  /** Position of each call among the calls of the answer, by the index of its block. */
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
function wholeAnswer(answer: Answer, context: ChatContext): object {
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

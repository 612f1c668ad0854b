import * as z from "zod"
import { newId } from "../util/id.ts"
import { isRecord, parseJson } from "../util/json.ts"
import { type Answer, type AnswerBlock, malformedCall } from "./answer.ts"
import {
  type AnswerWriter,
  addSystem,
  assertChoice,
  type ClientApi,
  type ClientRequest,
  checked,
  countTokens,
  functionTool,
  inputTokens,
  namedEvent,
  readFile,
  readImage,
  resultMessages,
  type UserPart,
  unsupported,
} from "./api.ts"
import { type GatewayErrorFields, tooLong } from "./errors.ts"

/** Anthropic's Messages API. */
export const messagesApi: ClientApi = {
  errorBody: messagesErrorBody,
  read(body) {
    const request = checked(MessagesRequest, body)
    const call = toModelCall(request)
    assertChoice(call)
    const { type = "disabled", display } = request.thinking ?? {}
    const showsThinking = type !== "disabled" && display !== "omitted"
    const context = { model: request.model, call, showsThinking }
    return {
      model: request.model,
      stream: request.stream === true,
      parallel: request.tool_choice?.disable_parallel_tool_use !== true,
      call,
      settings: settingsOf(request),
      whole: (answer) => wholeMessage(answer, context),
      writer: () => createMessageWriter(context),
    }
  },
}

const Block = z.looseObject({ type: z.string() })
type Block = z.infer<typeof Block>
const Content = z.union([z.string(), z.array(Block)])

const Tool = z.looseObject({
  name: z.string().min(1),
  description: z.string().nullish(),
  input_schema: z.record(z.string(), z.unknown()).optional(),
  defer_loading: z.boolean().nullish(),
})

const MessagesRequest = z.looseObject({
  model: z.string().min(1),
  max_tokens: z.int().positive().nullish(),
  system: Content.nullish(),
  messages: z
    .array(z.looseObject({ role: z.enum(["user", "assistant", "system"]), content: Content }))
    .min(1),
  tools: z.array(Tool).nullish(),
  tool_choice: z
    .looseObject({
      type: z.enum(["auto", "any", "tool", "none"]),
      name: z.string().optional(),
      disable_parallel_tool_use: z.boolean().optional(),
    })
    .nullish(),
  stream: z.boolean().nullish(),
  stop_sequences: z.array(z.string()).nullish(),
  temperature: z.number().nullish(),
  top_p: z.number().nullish(),
  top_k: z.number().nullish(),
  thinking: z.looseObject({ type: z.string(), display: z.string().nullish() }).nullish(),
  output_config: z
    .looseObject({ format: z.looseObject({ schema: z.record(z.string(), z.unknown()) }).nullish() })
    .nullish(),
})
/** The fields of a request that the gateway uses. Other fields are accepted and have no effect. */
type MessagesRequest = z.infer<typeof MessagesRequest>

/** Returns the request fields in the format of the Chat Completions API. */
function settingsOf(request: MessagesRequest): Record<string, unknown> {
  const { max_tokens, stop_sequences: stop, temperature, top_p, top_k, output_config } = request
  const schema = output_config?.format?.schema
  return {
    max_tokens: max_tokens ?? undefined,
    temperature: temperature ?? undefined,
    top_p: top_p ?? undefined,
    top_k: top_k ?? undefined,
    stop: stop && stop.length > 0 ? stop : undefined,
    response_format: schema && { type: "json_schema", json_schema: { name: "answer", schema } },
  }
}

type Call = ClientRequest["call"]
type Message = Call["prompt"][number]

function toModelCall(request: MessagesRequest): Call {
  const call: Call = { prompt: readPrompt(request) }
  const tools = readTools(request)
  if (tools.length > 0) call.tools = tools
  const { type, name = "" } = request.tool_choice ?? {}
  if (type !== undefined)
    call.toolChoice =
      type === "tool" ? { type, toolName: name } : { type: type === "any" ? "required" : type }
  return call
}

/**
 * Returns the tools that the client executes. Omits tools that Anthropic's servers execute, and deferred tools that no
 * result has named yet.
 */
function readTools({ tools, messages }: MessagesRequest) {
  const found = new Set(
    messages
      .flatMap(({ content }) => blocksOf(content))
      .flatMap((block) =>
        block.type === "tool_result" ? blocksOf(checked(Result, block).content).flatMap(namedBy) : [],
      ),
  )
  return (tools ?? []).flatMap(({ name, description, input_schema: schema, defer_loading: isDeferred }) =>
    schema === undefined || (isDeferred && !found.has(name)) ? [] : [functionTool(name, description, schema)],
  )
}

function namedBy(block: Block): string[] {
  return block.type === "tool_reference" ? [checked(Reference, block).tool_name] : []
}

function blocksOf(content: z.infer<typeof Content> | null | undefined): Block[] {
  if (!content) return []
  return typeof content === "string" ? [{ type: "text", text: content }] : content
}

/** Types of blocks that only Anthropic's servers can use: thinking, and calls that these servers executed. */
const ownBlocks = new Set([
  "thinking",
  "redacted_thinking",
  "server_tool_use",
  "web_search_tool_result",
  "web_fetch_tool_result",
  "code_execution_tool_result",
  "bash_code_execution_tool_result",
  "text_editor_code_execution_tool_result",
  "tool_search_tool_result",
  "mcp_tool_use",
  "mcp_tool_result",
])

const Text = z.looseObject({ text: z.string() })
const ToolUse = z.looseObject({
  id: z.string(),
  name: z.string().min(1),
  input: z.record(z.string(), z.unknown()),
})
const Result = z.looseObject({
  tool_use_id: z.string(),
  content: Content.nullish(),
  is_error: z.boolean().nullish(),
})
const Reference = z.looseObject({ tool_name: z.string() })
const Source = z.looseObject({
  type: z.string(),
  media_type: z.string().optional(),
  data: z.string().optional(),
  url: z.string().optional(),
  content: Content.optional(),
})
const WithSource = z.looseObject({ source: Source, title: z.string().nullish() })
const SearchResult = z.looseObject({ source: z.string(), title: z.string(), content: z.array(Text) })

function readPrompt({ system, messages }: MessagesRequest): Message[] {
  const names = new Map<string, string>()
  const prompt: Message[] = []
  if (system) addSystem(prompt, textOf(system, "system"))
  for (const [index, { role, content }] of messages.entries()) {
    const where = `messages.${index}.content`
    if (role === "system") addSystem(prompt, textOf(content, where))
    else if (role === "assistant") prompt.push(...readAssistant(blocksOf(content), where, names))
    else prompt.push(...readUser(blocksOf(content), where, names))
  }
  return prompt
}

/** Joins the text blocks of a system prompt. Throws `GatewayError` if the prompt contains a block of another type. */
function textOf(content: z.infer<typeof Content>, where: string): string {
  return blocksOf(content)
    .map((block, index) => {
      if (block.type !== "text") throw unsupported(`blocks of type ${block.type} here`, `${where}.${index}`)
      return checked(Text, block, `${where}.${index}`).text
    })
    .join("\n\n")
}

/**
 * Converts an assistant message. Adds the tool name of each call to `names`, because a result contains only the id of
 * its call.
 */
function readAssistant(blocks: readonly Block[], where: string, names: Map<string, string>): Message[] {
  const content: Extract<Message, { role: "assistant" }>["content"] = []
  for (const [index, block] of blocks.entries()) {
    const at = `${where}.${index}`
    if (block.type === "text") {
      const { text } = checked(Text, block, at)
      if (text !== "") content.push({ type: "text", text })
    } else if (block.type === "tool_use") {
      const { id, name, input } = checked(ToolUse, block, at)
      names.set(id, name)
      content.push({ type: "tool-call", toolCallId: id, toolName: name, input })
    } else if (!ownBlocks.has(block.type)) throw unsupported(`blocks of type ${block.type} here`, at)
  }
  return content.length > 0 ? [{ role: "assistant", content }] : []
}

/** Converts a user message. In the returned messages, the call results come first. */
function readUser(blocks: readonly Block[], where: string, names: ReadonlyMap<string, string>): Message[] {
  const results: Parameters<typeof resultMessages>[0][number][] = []
  const content: UserPart[] = []
  for (const [index, block] of blocks.entries()) {
    const at = `${where}.${index}`
    if (block.type === "tool_result") {
      const { tool_use_id: toolCallId, content: given, is_error: isError } = checked(Result, block, at)
      const toolName = names.get(toolCallId) ?? "unknown"
      const parts = blocksOf(given).flatMap((part, inner) => readPart(part, `${at}.content.${inner}`))
      results.push({ toolCallId, toolName, content: parts, isError: isError === true })
    } else content.push(...readPart(block, at))
  }
  const said: Message[] = content.length > 0 ? [{ role: "user", content }] : []
  return [...resultMessages(results), ...said]
}

function readPart(block: Block, where: string): UserPart[] {
  switch (block.type) {
    case "text": {
      const { text } = checked(Text, block, where)
      return text === "" ? [] : [{ type: "text", text }]
    }
    case "image":
    case "document": {
      const { source, title } = checked(WithSource, block, where)
      return readSource(block.type, source, title, `${where}.source`)
    }
    case "search_result": {
      const { source, title, content } = checked(SearchResult, block, where)
      return [{ type: "text", text: [title, source, ...content.map(({ text }) => text)].join("\n") }]
    }
    case "tool_reference":
      return [
        { type: "text", text: `The tool ${checked(Reference, block, where).tool_name} is now available.` },
      ]
    default:
      if (ownBlocks.has(block.type)) return []
      throw unsupported(`blocks of type ${block.type} here`, where)
  }
}

function readSource(
  kind: "image" | "document",
  source: z.infer<typeof Source>,
  title: string | null | undefined,
  where: string,
): UserPart[] {
  const { type, media_type: mediaType = "text/plain", data = "", url = "", content } = source
  switch (type) {
    case "base64":
      return [{ ...readFile(`data:${mediaType};base64,${data}`, where), filename: title ?? undefined }]
    case "url":
      if (kind === "document") throw unsupported("documents by URL", where)
      return [readImage(url, where)]
    case "text":
      return [{ type: "text", text: [title, data].filter(Boolean).join("\n") }]
    case "content":
      return blocksOf(content).flatMap((block, index) => readPart(block, `${where}.content.${index}`))
    default:
      throw unsupported(`sources of type ${type}`, where)
  }
}

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
 * that is too long by the message text.
 */
function messagesErrorBody({ message, status, label }: GatewayErrorFields) {
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
 * cannot contain any other value. If the output limit cut the answer off, omits the call instead.
 */
function wholeMessage(answer: Answer, context: MessageContext): object {
  const isCut = answer.reason === "length"
  const content = answer.blocks
    .filter((block) => isShown(block, context) && !(isCut && isMalformed(block)))
    .map(blockOf)
  return { ...newHead(context), content, ...stop(answer), usage: writeUsage(answer, context) }
}

/** Creates a writer for the events of one message. */
function createMessageWriter(context: MessageContext): AnswerWriter {
  /** Index of each block in the message that the client receives, by its index in the answer. */
  const positions = new Map<number, number>()
  /**
   * Tool names of the calls whose input is not a JSON object, by block index. These calls are reported as malformed
   * only when the message ends, because the output limit may have cut them off.
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

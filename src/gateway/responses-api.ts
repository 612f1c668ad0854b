import * as z from "zod"
import { newId } from "../util/id.ts"
import type { Answer, AnswerBlock, AnswerEvent } from "./answer.ts"
import {
  type AnswerWriter,
  addSystem,
  assertChoice,
  type ClientApi,
  type ClientRequest,
  checked,
  countTokens,
  customInput,
  customTool,
  functionTool,
  invalid,
  namedEvent,
  readArguments,
  readFile,
  readImage,
  resultMessages,
  type UserPart,
  unsupported,
} from "./api.ts"
import { errorBody } from "./errors.ts"

/** OpenAI's Responses API. */
export const responsesApi: ClientApi = {
  errorBody,
  read(body) {
    const request = checked(ResponsesRequest, body)
    assertStateless(request)
    const tools = readTools(request)
    const call = toModelCall(request, tools)
    assertChoice(call)
    const context = { request, call, tools: new Map(tools.map((tool) => [tool.name, tool])) }
    return {
      model: request.model,
      stream: request.stream === true,
      parallel: request.parallel_tool_calls !== false,
      call,
      settings: settingsOf(request),
      whole: (answer) => wholeResponse(answer, context),
      writer: () => createResponseWriter(context),
    }
  },
}

const ResponsesRequest = z.looseObject({
  model: z.string().min(1),
  input: z.union([z.string(), z.array(z.looseObject({}))]),
  instructions: z.string().nullish(),
  tools: z.array(z.looseObject({ type: z.string() })).nullish(),
  tool_choice: z.union([z.enum(["auto", "none", "required"]), z.looseObject({ type: z.string() })]).nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  stream: z.boolean().nullish(),
  max_output_tokens: z.number().nullish(),
  temperature: z.number().nullish(),
  top_p: z.number().nullish(),
  reasoning: z.looseObject({ effort: z.string().nullish() }).nullish(),
  text: z.looseObject({ format: z.looseObject({ type: z.string() }).nullish() }).nullish(),
  user: z.string().nullish(),
})
/** The fields of a request that the gateway uses. Other fields have no effect, except {@link storedFields}. */
export type ResponsesRequest = z.infer<typeof ResponsesRequest>

/** Fields that are rejected because they require stored data, and what to send instead. */
const storedFields = {
  previous_response_id: 'Send the whole conversation in "input".',
  conversation: 'Send the whole conversation in "input".',
  prompt: 'Send the text of the prompt in "input" or "instructions".',
  background: "Send the request without this field, and wait for the answer.",
}

/** Throws `GatewayError` if the request requires stored data, because the gateway stores nothing. */
function assertStateless(request: ResponsesRequest): void {
  for (const [field, next] of Object.entries(storedFields))
    if (request[field]) throw invalid(`${field}: The gateway stores no data. ${next}`, field)
}

type Call = ClientRequest["call"]
type Message = Call["prompt"][number]

function toModelCall(request: ResponsesRequest, offered: readonly ClientTool[]): Call {
  const { tools, toolChoice } = readChoice(request, offered)
  const call: Call = { prompt: readPrompt(request, offered) }
  if (tools.length > 0)
    call.tools = tools.map(({ name, description, parameters }) => functionTool(name, description, parameters))
  if (toolChoice) call.toolChoice = toolChoice
  return call
}

/** Returns the request fields in the format of the Chat Completions API. */
function settingsOf(request: ResponsesRequest): Record<string, unknown> {
  const { max_output_tokens, temperature, top_p, reasoning, text, user } = request
  return {
    max_tokens: max_output_tokens ?? undefined,
    temperature: temperature ?? undefined,
    top_p: top_p ?? undefined,
    reasoning_effort: reasoning?.effort ?? undefined,
    response_format: responseFormat(text?.format),
    user: user ?? undefined,
  }
}

function responseFormat(
  format: { type: string; [key: string]: unknown } | null | undefined,
): object | undefined {
  if (!format || format.type === "text") return undefined
  const { type, ...rest } = format
  return type === "json_schema" ? { type, json_schema: rest } : { type }
}

const FunctionTool = z.looseObject({
  name: z.string().min(1),
  description: z.string().nullish(),
  parameters: z.record(z.string(), z.unknown()).nullish(),
})
const CustomTool = z.looseObject({
  name: z.string().min(1),
  description: z.string().nullish(),
  format: z.looseObject({ syntax: z.string().optional(), definition: z.string().optional() }).nullish(),
})
const SearchTool = FunctionTool.omit({ name: true }).extend({ execution: z.string().nullish() })
/** Name of the function that searches for deferred tools. The tool itself has no name in the Responses API. */
const searchName = "tool_search"
const WithTools = z.looseObject({ tools: z.array(z.looseObject({ type: z.string() })) })
const Namespace = z.looseObject({
  name: z.string().min(1),
  tools: z.array(z.looseObject({ type: z.string() })),
})

/**
 * Returns the tools that the client executes, including tools that input items add. Omits tools that OpenAI's servers
 * execute, such as `web_search`.
 */
function readTools({ tools: given, input }: ResponsesRequest): ClientTool[] {
  const added = (typeof input === "string" ? [] : input).flatMap((item, index) =>
    item.type === "additional_tools" || item.type === "tool_search_output"
      ? toolsIn(checked(WithTools, item, `input.${index}`).tools, `input.${index}.tools`)
      : [],
  )
  const tools = new Map<string, ClientTool>()
  for (const tool of [...toolsIn(given ?? [], "tools"), ...added])
    tools.set(`${tool.namespace ?? ""} ${tool.ownName}`, tool)
  const names = Map.groupBy(tools.values(), ({ name }) => name)
  return [...tools.values()].map((tool) =>
    tool.namespace !== undefined && (names.get(tool.name)?.length ?? 0) > 1
      ? { ...tool, name: `${tool.namespace}__${tool.name}` }
      : tool,
  )
}

function toolsIn(tools: readonly { type: string }[], where: string, namespace?: string): ClientTool[] {
  return tools.flatMap((tool, index) => readTool(tool, `${where}.${index}`, namespace))
}

function readTool(tool: { type: string }, where: string, namespace?: string): ClientTool[] {
  switch (tool.type) {
    case "function": {
      const { name, description, parameters } = checked(FunctionTool, tool, where)
      return [{ kind: "function", name, ownName: name, namespace, description, parameters }]
    }
    case "custom": {
      const { name, description, format } = checked(CustomTool, tool, where)
      const { description: text, inputSchema: parameters } = customTool(name, description, format)
      return [{ kind: "custom", name, ownName: name, namespace, description: text, parameters }]
    }
    case "namespace": {
      const { name, tools } = checked(Namespace, tool, where)
      return toolsIn(tools, `${where}.tools`, name)
    }
    case "tool_search": {
      const { execution, description, parameters } = checked(SearchTool, tool, where)
      if (execution !== "client") return []
      return [{ kind: "search", name: searchName, ownName: searchName, namespace, description, parameters }]
    }
    default:
      return []
  }
}

const NamedChoice = z.looseObject({ name: z.string() })
const AllowedTools = z.looseObject({
  mode: z.enum(["auto", "required"]),
  tools: z.array(z.looseObject({ type: z.string(), name: z.string().optional() })),
})

function readChoice(
  { tool_choice: choice }: ResponsesRequest,
  tools: readonly ClientTool[],
): { tools: readonly ClientTool[]; toolChoice?: Call["toolChoice"] } {
  if (!choice) return { tools }
  if (typeof choice === "string") return { tools, toolChoice: { type: choice } }
  switch (choice.type) {
    case "function":
    case "custom": {
      const { name } = checked(NamedChoice, choice, "tool_choice")
      return { tools, toolChoice: { type: "tool", toolName: nameFor(tools, name) } }
    }
    case "allowed_tools": {
      const { mode, tools: allowed } = checked(AllowedTools, choice, "tool_choice")
      const names = new Set(allowed.map(({ name }) => name))
      return { tools: tools.filter(({ ownName }) => names.has(ownName)), toolChoice: { type: mode } }
    }
    default:
      throw unsupported(`the tool ${choice.type}`, "tool_choice")
  }
}

/** Returns a tool's name in requests to the upstream. For a tool that is no longer offered, returns `ownName`. */
function nameFor(tools: readonly ClientTool[], ownName: string, namespace?: string | null): string {
  const named = tools.filter((tool) => tool.ownName === ownName)
  return (named.find((tool) => tool.namespace === (namespace ?? undefined)) ?? named[0])?.name ?? ownName
}

const MessageItem = z.looseObject({
  role: z.enum(["user", "assistant", "system", "developer"]),
  content: z.union([z.string(), z.array(z.looseObject({ type: z.string() }))]),
})
const CallItem = z.looseObject({
  call_id: z.string(),
  name: z.string().min(1),
  namespace: z.string().nullish(),
  arguments: z.string(),
})
const CustomCallItem = CallItem.omit({ arguments: true }).extend({ input: z.string() })
const SearchCallItem = z.looseObject({
  call_id: z.string(),
  arguments: z.record(z.string(), z.unknown()),
})
const SearchResultItem = WithTools.extend({ call_id: z.string() })
/** A message between agents. OpenAI encrypts the content. In the gateway, the content is the model's text. */
const AgentMessageItem = z.looseObject({
  content: z.array(z.looseObject({ text: z.string().optional(), encrypted_content: z.string().optional() })),
})
const ResultItem = z.looseObject({
  call_id: z.string(),
  output: z.union([z.string(), z.array(z.looseObject({ type: z.string() }))]),
})

/** Types of items that only OpenAI's servers can use: reasoning, and calls that these servers executed. */
const ownItems = new Set([
  "reasoning",
  "web_search_call",
  "file_search_call",
  "code_interpreter_call",
  "image_generation_call",
  "mcp_list_tools",
  "mcp_call",
])

/** Converts the input to messages. Adds each call to the preceding assistant message, and joins consecutive results. */
function readPrompt({ input, instructions }: ResponsesRequest, tools: readonly ClientTool[]): Message[] {
  const messages: Message[] = []
  if (instructions) addSystem(messages, instructions)
  if (typeof input === "string")
    return [...messages, { role: "user", content: [{ type: "text", text: input }] }]
  const names = new Map<string, string>()
  let results: Parameters<typeof resultMessages>[0][number][] = []

  function endResults(): void {
    messages.push(...resultMessages(results))
    results = []
  }

  function addAssistant(part: AssistantPart): void {
    endResults()
    const last = messages.at(-1)
    if (last?.role === "assistant") last.content.push(part)
    else messages.push({ role: "assistant", content: [part] })
  }

  for (const [index, item] of input.entries()) {
    const where = `input.${index}`
    const type = item.type ?? "message"
    switch (type) {
      case "message": {
        const { role, content } = checked(MessageItem, item, where)
        const parts = readContent(content, `${where}.content`)
        if (role === "assistant") {
          const text = textOf(parts)
          if (text !== "") addAssistant({ type: "text", text })
          break
        }
        endResults()
        if (role === "user") messages.push({ role, content: parts })
        else addSystem(messages, textOf(parts))
        break
      }
      case "function_call":
      case "custom_tool_call": {
        const { call_id: toolCallId, name, namespace } = checked(NamedCall, item, where)
        const toolName = nameFor(tools, name, namespace)
        const given =
          type === "function_call"
            ? readArguments(checked(CallItem, item, where).arguments)
            : { input: checked(CustomCallItem, item, where).input }
        names.set(toolCallId, toolName)
        addAssistant({ type: "tool-call", toolCallId, toolName, input: given })
        break
      }
      case "function_call_output":
      case "custom_tool_call_output": {
        const { call_id: toolCallId, output } = checked(ResultItem, item, where)
        const content = readContent(output, `${where}.output`)
        results.push({ toolCallId, toolName: names.get(toolCallId) ?? "unknown", content, isError: false })
        break
      }
      case "tool_search_call": {
        const { call_id: toolCallId, arguments: given } = checked(SearchCallItem, item, where)
        addAssistant({ type: "tool-call", toolCallId, toolName: searchName, input: given })
        break
      }
      case "tool_search_output": {
        const { call_id: toolCallId, tools: found } = checked(SearchResultItem, item, where)
        const names = toolsIn(found, `${where}.tools`).map(({ ownName }) => ownName)
        const text =
          names.length > 0 ? `These tools are now available: ${names.join(", ")}` : "No tool was found."
        results.push({ toolCallId, toolName: searchName, content: [{ type: "text", text }], isError: false })
        break
      }
      case "agent_message": {
        const { content } = checked(AgentMessageItem, item, where)
        const parts = content.map(({ text, encrypted_content: passedOn }) => text ?? passedOn ?? "")
        endResults()
        messages.push({ role: "user", content: [{ type: "text", text: parts.join("") }] })
        break
      }
      case "additional_tools":
      case "configuration_update":
        break
      case "item_reference":
        throw invalid(`${where}: The gateway stores no items. Send the item itself.`, where)
      default:
        if (typeof type !== "string" || !ownItems.has(type))
          throw unsupported(`items of type ${String(type)}`, where)
    }
  }
  endResults()
  return messages
}

const NamedCall = CallItem.omit({ arguments: true })

type AssistantPart = Extract<Message, { role: "assistant" }>["content"][number]

const Text = z.looseObject({ text: z.string() })
const Refusal = z.looseObject({ refusal: z.string() })
const Image = z.looseObject({ image_url: z.string("Send the image as a URL. The gateway stores no files.") })
const File = z.looseObject({
  file_data: z.string("Send the content of the file. The gateway stores no files."),
  filename: z.string().nullish(),
})

function readContent(content: string | readonly { type: string }[], where: string): UserPart[] {
  if (typeof content === "string") return [{ type: "text", text: content }]
  return content.map((part, index) => readPart(part, `${where}.${index}`))
}

function readPart(part: { type: string }, where: string): UserPart {
  switch (part.type) {
    case "input_text":
    case "output_text":
    case "text":
      return { type: "text", text: checked(Text, part, where).text }
    case "refusal":
      return { type: "text", text: checked(Refusal, part, where).refusal }
    case "input_image":
      return readImage(checked(Image, part, where).image_url, `${where}.image_url`)
    case "input_file": {
      const { file_data: data, filename } = checked(File, part, where)
      return { ...readFile(data, `${where}.file_data`), filename: filename ?? undefined }
    }
    default:
      throw unsupported(`content of type ${part.type}`, where)
  }
}

function textOf(parts: readonly UserPart[]): string {
  return parts.map((part) => (part.type === "text" ? part.text : "")).join("")
}

/**
 * A tool that a request offers. `name` is unique within the request. `ownName` and `namespace` are the names that the
 * client uses.
 */
export interface ClientTool {
  kind: "function" | "custom" | "search"
  name: string
  ownName: string
  namespace: string | undefined
  description: string | null | undefined
  parameters: Record<string, unknown> | null | undefined
}

/** The parts of a request that its answer depends on. */
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
function wholeResponse(answer: Answer, context: ResponseContext): object {
  const output = answer.blocks.map((block) => itemOf(block, newItemId(block, context), context))
  return responseOf(newHead(context), ending(answer, output, context))
}

/** Creates a writer for the events of one response. */
function createResponseWriter(context: ResponseContext): AnswerWriter {
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

/** Returns the events before (`added`) or after (`done`) the deltas of an item. */
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

/** Returns the item as it is before its content arrives. */
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

import * as z from "zod"
import {
  addSystem,
  assertChoice,
  type ClientApi,
  type ClientRequest,
  checked,
  customTool,
  functionTool,
  invalid,
  readArguments,
  readFile,
  readImage,
  resultMessages,
  type UserPart,
  unsupported,
} from "./api.ts"
import { errorBody } from "./errors.ts"
import { type ClientTool, createResponseWriter, wholeResponse } from "./responses-answer.ts"

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
/** The fields of a request that the gateway uses. Other fields are accepted and have no effect. */
export type ResponsesRequest = z.infer<typeof ResponsesRequest>

/** Throws for a request that refers to data on the server, since the gateway stores nothing. */
function assertStateless(request: ResponsesRequest): void {
  for (const field of ["previous_response_id", "conversation", "prompt", "background"])
    if (request[field])
      throw invalid(`${field}: The gateway stores no answers. Send the whole conversation in "input".`, field)
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

/** Returns the fields of the request in the format of the Chat Completions API. */
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
 * Returns the tools that the client executes, including tools that items of the input add. Omits tools that OpenAI's
 * servers execute, such as `web_search`.
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

/** Returns the tool's name in requests to the upstream. A tool that is no longer offered keeps its name. */
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

/**
 * Converts the input to messages. Joins calls with the assistant message before them, and joins consecutive results.
 */
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

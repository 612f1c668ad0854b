import * as z from "zod"
import {
  assertChoice,
  type ClientApi,
  type ClientRequest,
  checked,
  customTool,
  functionTool,
  readArguments,
  readImage,
} from "./api.ts"
import { createChunkWriter, wholeAnswer } from "./chat-answer.ts"
import { errorBody } from "./errors.ts"

/** The fields of a request that is passed through. */
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

/** A request that is converted to text. Other fields go to the upstream unchanged. */
const TextRequest = z.looseObject({
  model: z.string(),
  messages: z.array(Message).min(1),
  tools: z.array(z.discriminatedUnion("type", [FunctionTool, CustomTool])).nullish(),
  tool_choice: z.union([z.enum(["auto", "none", "required"]), NamedTool]).nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  n: z.literal(1, "Must be 1 if the gateway reads calls from the text.").nullish(),
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

/** Returns the fields of the request that the model call does not contain. */
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
      return { role: "system", content: textOf(message.content) }
    case "user":
      return { role: "user", content: mixedParts(message.content, where) }
    case "assistant": {
      const text = textOf(message.content ?? "")
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

function textOf(content: TextContent): string {
  if (typeof content === "string") return content
  return content.map((part) => (part.type === "text" ? part.text : part.refusal)).join("")
}

function mixedParts(content: MixedContent, where: string) {
  const parts = typeof content === "string" ? [{ type: "text" as const, text: content }] : content
  return parts.map((part) =>
    part.type === "text" ? { type: "text" as const, text: part.text } : readImage(part.image_url.url, where),
  )
}

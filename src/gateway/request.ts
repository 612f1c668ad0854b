import * as z from "zod"
import type { ModelCall } from "../model/chat-completions.ts"
import { isRecord, parseJson } from "../util/json.ts"
import { GatewayError } from "./errors.ts"

/** Request fields that every policy needs. Other fields are allowed. */
const ChatRequest = z.looseObject({
  model: z.string().min(1),
  messages: z.array(z.unknown()).min(1),
  tools: z.array(z.unknown()).nullish(),
  stream: z.boolean().nullish(),
})
export type ChatRequest = z.infer<typeof ChatRequest>

/** Parses a request body. Throws `GatewayError` with status 400. */
export function parseChatRequest(text: string): ChatRequest {
  const parsed = parseJson(text)
  if (!parsed.ok) throw invalid(`The body is not valid JSON: ${parsed.error}`)
  return checked(ChatRequest, parsed.value)
}

/** Returns true if the request offers at least one tool. */
export function offersTools({ tools }: ChatRequest): boolean {
  return (tools ?? []).length > 0
}

const Text = z.object({ type: z.literal("text"), text: z.string() })
const Refusal = z.object({ type: z.literal("refusal"), refusal: z.string() })
const Image = z.object({ type: z.literal("image_url"), image_url: z.object({ url: z.string() }) })

const spoken = z.union([z.string(), z.array(z.discriminatedUnion("type", [Text, Refusal]))])
const shown = z.union([z.string(), z.array(z.discriminatedUnion("type", [Text, Image]))])

const Call = z.object({
  id: z.string(),
  function: z.object({ name: z.string().min(1), arguments: z.string() }),
})

const Message = z.discriminatedUnion("role", [
  z.object({ role: z.literal("system"), content: spoken }),
  z.object({ role: z.literal("developer"), content: spoken }),
  z.object({ role: z.literal("user"), content: shown }),
  z.object({ role: z.literal("assistant"), content: spoken.nullish(), tool_calls: z.array(Call).nullish() }),
  z.object({ role: z.literal("tool"), tool_call_id: z.string(), content: shown }),
])
/** A message of a request that is converted to text. */
export type ChatMessage = z.infer<typeof Message>
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

const NamedTool = z.object({ type: z.literal("function"), function: z.object({ name: z.string() }) })

/** A request that is converted to text. Other fields go to the upstream unchanged. */
const TextRequest = z.looseObject({
  model: z.string(),
  messages: z.array(Message).min(1),
  tools: z.array(FunctionTool).nullish(),
  tool_choice: z.union([z.enum(["auto", "none", "required"]), NamedTool]).nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  n: z.literal(1, "Must be 1 when the gateway reads calls from the text.").nullish(),
  functions: z.undefined('Deprecated. Send "tools" instead.').optional(),
})
export type TextRequest = z.infer<typeof TextRequest>

/** Parses all fields that are converted to text. Throws `GatewayError` with status 400. */
export function parseTextRequest(request: ChatRequest): TextRequest {
  const parsed = checked(TextRequest, request)
  const { tools, tool_choice: choice } = parsed
  const names = (tools ?? []).map((tool) => tool.function.name)
  if (isRecord(choice) && !names.includes(choice.function.name))
    throw invalid(`No tool is named ${choice.function.name}.`, "tool_choice")
  if (choice === "required" && names.length === 0)
    throw invalid("A call is required, but the request offers no tools.", "tool_choice")
  return parsed
}

function checked<T>(schema: z.ZodType<T>, value: unknown): T {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  const [issue] = result.error.issues
  const param = issue?.path.join(".")
  throw invalid(`${param || "The body"}: ${issue?.message ?? "invalid"}`, param || undefined)
}

function invalid(message: string, param?: string): GatewayError {
  return new GatewayError(message, { status: 400, label: "invalid_request", param })
}

type Prompt = ModelCall["prompt"]
type Call = Pick<ModelCall, "prompt" | "tools" | "toolChoice">

/** Converts the request to a model call. Throws `GatewayError` for an image without a valid URL. */
export function toModelCall(request: TextRequest): Call {
  const call: Call = { prompt: toPrompt(request.messages) }
  const tools = request.tools ?? []
  if (tools.length === 0) return call
  call.tools = tools.map(({ function: { name, description, parameters } }) => ({
    type: "function",
    name,
    description: description || undefined,
    inputSchema: { type: "object", properties: {}, ...parameters },
  }))
  const choice = request.tool_choice
  if (choice) {
    call.toolChoice =
      typeof choice === "string" ? { type: choice } : { type: "tool", toolName: choice.function.name }
  }
  return call
}

/** Returns the fields of the request that the model call does not contain. */
export function otherSettings(request: TextRequest): Record<string, unknown> {
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

/** Converts messages. A result contains only the id of its call, so the tool's name comes from the call. */
function toPrompt(messages: readonly ChatMessage[]): Prompt {
  const calls = messages.flatMap((message) =>
    message.role === "assistant" ? (message.tool_calls ?? []) : [],
  )
  const names = new Map(calls.map((call) => [call.id, call.function.name]))
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
      const calls = (message.tool_calls ?? []).map((call) => ({
        type: "tool-call" as const,
        toolCallId: call.id,
        toolName: call.function.name,
        input: readArguments(call.function.arguments),
      }))
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

function textOf(content: TextContent): string {
  if (typeof content === "string") return content
  return content.map((part) => (part.type === "text" ? part.text : part.refusal)).join("")
}

function mixedParts(content: MixedContent, where: string) {
  const parts = typeof content === "string" ? [{ type: "text" as const, text: content }] : content
  return parts.map((part) =>
    part.type === "text"
      ? { type: "text" as const, text: part.text }
      : { type: "file" as const, ...readImage(part.image_url.url, where) },
  )
}

function readImage(url: string, where: string) {
  const [, mediaType, base64] = /^data:([\w.+-]+\/[\w.+-]+);base64,(.*)$/s.exec(url) ?? []
  if (mediaType !== undefined && base64 !== undefined)
    return { mediaType, data: { type: "data" as const, data: base64 } }
  if (/^https?:/i.test(url) && URL.canParse(url))
    return { mediaType: "image", data: { type: "url" as const, url: new URL(url) } }
  throw new GatewayError("The image must be an http(s) URL or a base64 data: URL.", {
    status: 400,
    label: "invalid_request",
    param: where,
  })
}

/** Returns the arguments of a call. Text that is not a JSON object becomes the value of `arguments`. */
function readArguments(text: string): Record<string, unknown> {
  const parsed = parseJson(text)
  if (parsed.ok && isRecord(parsed.value)) return parsed.value
  return text.trim() === "" ? {} : { arguments: text }
}

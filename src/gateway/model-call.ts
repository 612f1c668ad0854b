import type { ModelCall } from "../model/chat-server.ts"
import { isRecord, parseJson } from "../util/json.ts"
import { GatewayError } from "./errors.ts"
import type { ChatMessage, ShownContent, SpokenContent, TextRequest } from "./request.ts"

type Prompt = ModelCall["prompt"]
type Call = Pick<ModelCall, "prompt" | "tools" | "toolChoice">

/** The request as a model of `src/model/` is asked. Throws `GatewayError` for an image that is no URL. */
export function toModelCall(request: TextRequest): Call {
  const call: Call = { prompt: toPrompt(request.messages) }
  const tools = request.tools ?? []
  if (tools.length === 0) return call
  call.tools = tools.map(({ function: { name, description, parameters } }) => ({
    type: "function",
    name,
    ...(description && { description }),
    inputSchema: { type: "object", properties: {}, ...parameters },
  }))
  const choice = request.tool_choice
  if (choice) {
    call.toolChoice =
      typeof choice === "string" ? { type: choice } : { type: "tool", toolName: choice.function.name }
  }
  return call
}

/** The keys that the call above does not hold. */
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

/** A result names its call by an id; what it is told as is the tool's name, which only the call has. */
function toPrompt(messages: readonly ChatMessage[]): Prompt {
  const calls = messages.flatMap((message) =>
    message.role === "assistant" ? (message.tool_calls ?? []) : [],
  )
  const names = new Map(calls.map((call) => [call.id, call.function.name]))
  return messages.map((message, index) => toMessage(message, names, `messages.${index}.content`))
}

/** `where` is the place of its content in the request. */
function toMessage(
  message: ChatMessage,
  toolNames: ReadonlyMap<string, string>,
  where: string,
): Prompt[number] {
  switch (message.role) {
    case "system":
    case "developer":
      return { role: "system", content: spokenText(message.content) }
    case "user":
      return { role: "user", content: shownParts(message.content, where) }
    case "assistant": {
      const text = spokenText(message.content ?? "")
      const calls = (message.tool_calls ?? []).map((call) => ({
        type: "tool-call" as const,
        toolCallId: call.id,
        toolName: call.function.name,
        input: readArguments(call.function.arguments),
      }))
      return {
        role: "assistant",
        content: [...(text === "" ? [] : [{ type: "text" as const, text }]), ...calls],
      }
    }
    case "tool": {
      const { tool_call_id: toolCallId } = message
      const output = { type: "content" as const, value: shownParts(message.content, where) }
      const toolName = toolNames.get(toolCallId) ?? "unknown"
      return { role: "tool", content: [{ type: "tool-result", toolCallId, toolName, output }] }
    }
  }
}

function spokenText(content: SpokenContent): string {
  if (typeof content === "string") return content
  return content.map((part) => (part.type === "text" ? part.text : part.refusal)).join("")
}

function shownParts(content: ShownContent, where: string) {
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
  throw new GatewayError("The image is neither an http(s) address nor a data: URL in base64.", {
    status: 400,
    label: "invalid_request",
    param: where,
  })
}

/** The model sees what it wrote, also where that was no JSON. */
function readArguments(text: string): Record<string, unknown> {
  const parsed = parseJson(text)
  if (parsed.ok && isRecord(parsed.value)) return parsed.value
  return text.trim() === "" ? {} : { arguments: text }
}

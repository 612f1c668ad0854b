import type {
  LanguageModelV4FilePart,
  LanguageModelV4Message,
  LanguageModelV4Prompt,
  LanguageModelV4TextPart,
  LanguageModelV4ToolResultPart,
} from "@ai-sdk/provider"
import { isRecord } from "../util/json.ts"
import type { Dialect } from "./dialect.ts"

type UserContent = (LanguageModelV4TextPart | LanguageModelV4FilePart)[]

/**
 * The history for a server that knows no tools: calls stand in the model's own answers as it would write them, results
 * in messages of the user's. `instructions` end the system prompt, or become one. Messages of one role that follow each
 * other are joined, since many chat templates refuse them.
 */
export function toTextPrompt(
  prompt: LanguageModelV4Prompt,
  dialect: Dialect,
  instructions: string,
): LanguageModelV4Prompt {
  const converted: LanguageModelV4Message[] = []
  for (const message of prompt) add(converted, convert(message, dialect))
  if (instructions === "") return converted
  const firstOther = converted.findIndex(({ role }) => role !== "system")
  const at = (firstOther < 0 ? converted.length : firstOther) - 1
  const system = converted[at]
  if (system?.role !== "system") return [{ role: "system", content: instructions }, ...converted]
  return converted.with(at, { ...system, content: `${system.content}\n\n${instructions}` })
}

function convert(message: LanguageModelV4Message, dialect: Dialect): LanguageModelV4Message {
  if (message.role === "assistant") return convertAssistant(message, dialect)
  if (message.role !== "tool") return message
  const results = message.content.filter((part) => part.type === "tool-result")
  return { role: "user", content: results.flatMap(convertResult) }
}

function convertAssistant(
  message: Extract<LanguageModelV4Message, { role: "assistant" }>,
  dialect: Dialect,
): LanguageModelV4Message {
  const texts: string[] = []
  const others: typeof message.content = []
  for (const part of message.content) {
    if (part.type === "text") texts.push(part.text)
    else if (part.type === "tool-call")
      texts.push(dialect.write(part.toolName, isRecord(part.input) ? part.input : {}))
    else if (part.type !== "tool-result") others.push(part)
  }
  const text = texts.map((piece) => piece.trim()).join("\n\n")
  return { ...message, content: [...others, ...(text === "" ? [] : [{ type: "text" as const, text }])] }
}

function convertResult({ toolName, output, providerOptions }: LanguageModelV4ToolResultPart): UserContent {
  const files: LanguageModelV4FilePart[] = []
  let text: string
  switch (output.type) {
    case "text":
      text = output.value
      break
    case "error-text":
      text = `Error: ${output.value}`
      break
    case "json":
      text = JSON.stringify(output.value)
      break
    case "error-json":
      text = `Error: ${JSON.stringify(output.value)}`
      break
    case "execution-denied":
      text = `Error: The call was not allowed. ${output.reason ?? ""}`.trimEnd()
      break
    case "content": {
      const texts = output.value.flatMap((part) => (part.type === "text" ? [part.text] : []))
      for (const part of output.value) {
        if (part.type === "file") files.push({ type: "file", data: part.data, mediaType: part.mediaType })
      }
      text = texts.join("\n")
    }
  }
  // What a tool returns must not look like the end of its result.
  const inner = text.replaceAll("</tool_response", "<\\/tool_response")
  const said = `<tool_response name="${toolName}">\n${inner}\n</tool_response>`
  return [{ type: "text", text: said, ...(providerOptions && { providerOptions }) }, ...files]
}

/** Appends the message, to the last one where that has the same role. */
function add(messages: LanguageModelV4Message[], message: LanguageModelV4Message): void {
  if (message.role !== "system" && message.content.length === 0) return
  const last = messages.at(-1)
  const { providerOptions } = message
  if (last?.role === "system" && message.role === "system") {
    const content = `${last.content}\n\n${message.content}`
    messages[messages.length - 1] = { ...last, content, ...(providerOptions && { providerOptions }) }
  } else if (last?.role === "user" && message.role === "user") {
    const content = [...last.content, ...message.content]
    messages[messages.length - 1] = { ...last, content, ...(providerOptions && { providerOptions }) }
  } else if (last?.role === "assistant" && message.role === "assistant") {
    messages[messages.length - 1] = { ...last, content: [...last.content, ...message.content] }
  } else messages.push(message)
}

import type {
  LanguageModelV4FilePart,
  LanguageModelV4Message,
  LanguageModelV4Prompt,
  LanguageModelV4TextPart,
  LanguageModelV4ToolChoice,
  LanguageModelV4ToolResultPart,
} from "@ai-sdk/provider"
import { isRecord } from "../util/json.ts"
import type { Dialect, MalformedCall, SyntheticTool } from "./dialect.ts"

/** Describes the tools and the call format, for the system prompt. */
export function describeTools(options: {
  tools: readonly SyntheticTool[]
  dialect: Dialect
  choice?: LanguageModelV4ToolChoice | undefined
}): string {
  const { tools, dialect, choice } = options
  const [first] = tools
  if (first === undefined) return ""
  const list = tools.map(({ name, description, inputSchema }) =>
    JSON.stringify({ name, description, parameters: inputSchema }),
  )
  return [
    "# Tools",
    "You can call these tools. Each line describes one tool, with its parameters as JSON Schema:",
    `<tools>\n${list.join("\n")}\n</tools>`,
    dialect.instructions,
    dialect.write(first.name, exampleInput(first)),
    [
      "Use exactly this format. You can make several calls in one answer.",
      "Calls inside quotes, or inside code fences that are not part of this format, are not executed.",
      "End your answer after the calls. The next message contains each result in <tool_response>. Never write <tool_response> yourself.",
      "If you do not need a tool, answer without a call.",
      ...requirements(choice),
    ].join("\n"),
  ].join("\n\n")
}

function requirements(choice: LanguageModelV4ToolChoice | undefined): string[] {
  if (choice?.type === "none") return ["Your next answer must not contain a call."]
  if (choice?.type === "required") return ["Your next answer must contain at least one call."]
  if (choice?.type === "tool") return [`Your next answer must contain a call to ${choice.toolName}.`]
  return []
}

/** Returns placeholders for the required parameters, or for the first parameter if none is required. */
function exampleInput({ inputSchema }: SyntheticTool): Record<string, unknown> {
  const properties = isRecord(inputSchema.properties) ? inputSchema.properties : {}
  const required = Array.isArray(inputSchema.required) ? inputSchema.required.map(String) : []
  const names = required.length > 0 ? required : Object.keys(properties).slice(0, 1)
  return Object.fromEntries(names.map((name) => [name, placeholder(properties[name])]))
}

function placeholder(property: unknown): unknown {
  const type = isRecord(property) ? property.type : undefined
  if (type === "number" || type === "integer") return 1
  if (type === "boolean") return true
  if (type === "array") return []
  return type === "object" ? {} : "…"
}

type UserContent = (LanguageModelV4TextPart | LanguageModelV4FilePart)[]

/**
 * Converts the history for a server that does not support tools. Calls become assistant text, and results become user
 * messages. Appends `instructions` to the system prompt. Joins consecutive messages with the same role, which many chat
 * templates reject.
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
  if (text !== "") others.push({ type: "text", text })
  return { ...message, content: others }
}

/** Returns the texts of all tool results in the history. */
export function resultTexts(prompt: LanguageModelV4Prompt): string[] {
  const parts = prompt.flatMap(({ role, content }) => (role === "tool" ? content : []))
  return parts.flatMap((part) => {
    if (part.type !== "tool-result") return []
    const { text } = convertOutput(part.output)
    return text === "" ? [] : [text]
  })
}

function convertResult({ toolName, output, providerOptions }: LanguageModelV4ToolResultPart): UserContent {
  const { text, files } = convertOutput(output)
  // Prevents a tool's output from closing the element that contains it.
  const inner = text.replaceAll("</tool_response", "<\\/tool_response")
  const wrapped = `<tool_response name="${toolName}">\n${inner}\n</tool_response>`
  return [{ type: "text", text: wrapped, providerOptions }, ...files]
}

function convertOutput(output: LanguageModelV4ToolResultPart["output"]): {
  text: string
  files: LanguageModelV4FilePart[]
} {
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
  return { text, files }
}

/** Appends the message, or joins it with the previous message if both have the same role. */
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

/** Result of an attempt, with the values that determine whether to retry. */
export interface AnswerOutcome {
  /** All text that the model wrote. */
  text: string
  /** Number of calls that were read, including calls to tools that are not offered. */
  calls: number
  malformed: readonly MalformedCall[]
  /** True if the answer reached the output limit. */
  cut: boolean
}

/** Default maximum number of retries in one request. */
export const defaultRetries = 2

/**
 * Returns the messages that ask the model to repair its answer, or undefined if no retry is needed. No retry is needed
 * if at least one call was read, because the problems of the other calls become their results. An answer that was cut
 * off is not retried.
 */
export function retryMessages(
  outcome: AnswerOutcome,
  options: {
    dialect: Dialect
    tools: readonly SyntheticTool[]
    choice?: LanguageModelV4ToolChoice | undefined
  },
): LanguageModelV4Message[] | undefined {
  const { text, calls, malformed, cut } = outcome
  const { dialect, tools, choice } = options
  const mustCall = choice?.type === "required" || choice?.type === "tool"
  if (calls > 0 || cut || (malformed.length === 0 && !mustCall)) return undefined
  const problems = malformed.map(
    (call) => `This call was not executed because it ${call.reason}.\n${call.text}`,
  )
  if (problems.length === 0) problems.push("Your answer contains no call, but one is required.")
  const named = choice?.type === "tool" ? choice.toolName : malformed.find(({ tool }) => tool)?.tool
  const tool = tools.find(({ name }) => name === named) ?? tools[0]
  const format = tool === undefined ? "" : dialect.write(tool.name, {})
  const answer = text.trim() || "(no text)"
  return [
    { role: "assistant", content: [{ type: "text", text: answer }] },
    {
      role: "user",
      content: [
        {
          type: "text",
          text: `${problems.join("\n\n")}\n\n${dialect.instructions}\n\n${format}\n\nAnswer again with only the ${problems.length === 1 ? "call" : "calls"}, in this format.`,
        },
      ],
    },
  ]
}

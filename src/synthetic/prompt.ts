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

/** What the model is told of the tools and of how to call them, as a part of its system prompt. */
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
    "You can call these tools, which are described by JSON Schema, one on each line:",
    `<tools>\n${list.join("\n")}\n</tools>`,
    dialect.instructions,
    dialect.write(first.name, exampleInput(first)),
    [
      "Only a call in exactly this form is carried out. Several calls may follow each other in one answer.",
      "Do not put calls into other code fences or quotes: there they count as examples.",
      "End the answer after the calls. The next message brings their results, each in <tool_response>; never write one yourself.",
      "Answer without a call when no tool is needed.",
      ...wishes(choice),
    ].join("\n"),
  ].join("\n\n")
}

function wishes(choice: LanguageModelV4ToolChoice | undefined): string[] {
  if (choice?.type === "none")
    return ["Tools are closed for the next answer: answer in words, without a call."]
  if (choice?.type === "required") return ["The next answer must hold at least one call."]
  if (choice?.type === "tool") return [`The next answer must hold a call of ${choice.toolName}.`]
  return []
}

/** Placeholders for what the tool must have, or else for its first parameter. */
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

/** How an answer ended, as far as asking again depends on it. */
export interface AnswerOutcome {
  /** All that the model wrote. */
  text: string
  /** How many calls can be run. */
  calls: number
  malformed: readonly MalformedCall[]
  /** It reached the output limit. */
  cut: boolean
}

/** How often a model is asked again in one step, where the caller does not say. */
export const defaultRetries = 2

/**
 * What is put behind the prompt to have the model mend its answer; undefined where there is nothing to mend: some call
 * can be run (what is wrong with the others then comes as their results), or the answer was cut off.
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
  const faults = malformed.map(
    (call) => `This call was not carried out, since it ${call.reason}:\n${call.text}`,
  )
  if (faults.length === 0) faults.push("The answer holds no call, and one is needed.")
  const named = choice?.type === "tool" ? choice.toolName : malformed.find(({ tool }) => tool)?.tool
  const tool = tools.find(({ name }) => name === named) ?? tools[0]
  const form = tool === undefined ? "" : dialect.write(tool.name, {})
  const answer = text.trim() || "(no text)"
  return [
    { role: "assistant", content: [{ type: "text", text: answer }] },
    {
      role: "user",
      content: [
        {
          type: "text",
          text: `${faults.join("\n\n")}\n\n${dialect.instructions}\n\n${form}\n\nAnswer again, with the call written in this form and nothing else.`,
        },
      ],
    },
  ]
}

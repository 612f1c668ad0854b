import type { LanguageModelV4ToolChoice } from "@ai-sdk/provider"
import { isRecord } from "../util/json.ts"
import type { Dialect, SyntheticTool } from "./dialect.ts"

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

import type {
  LanguageModelV4FilePart,
  LanguageModelV4Message,
  LanguageModelV4TextPart,
  LanguageModelV4ToolResultOutput,
  SharedV4ProviderOptions,
} from "@ai-sdk/provider"
import type { Message, MessageWithParts } from "../schema/message.ts"
import type { ToolPart } from "../schema/part.ts"
import { describeEffect } from "../schema/tool-moves.ts"
import { isRecord } from "../util/json.ts"
import { convertFile } from "./convert-file.ts"
import { type ModelInfo, modelName, type ProviderFamily } from "./model.ts"
import { quirksOf } from "./quirks.ts"

/** What a family's servers want of the history. */
interface Habits {
  /** True: results of calls may hold files. Otherwise those follow in a message of the user's. */
  filesInResults?: boolean
}

const habits: Record<ProviderFamily, Habits> = {
  "openai-compatible": {},
  openai: {},
  anthropic: { filesInResults: true },
  google: { filesInResults: true },
  other: {},
}

/** A message of the person's: its texts and the files that the model takes. */
export function convertUser({ parts }: MessageWithParts, model: ModelInfo): LanguageModelV4Message[] {
  const content: (LanguageModelV4TextPart | LanguageModelV4FilePart)[] = []
  for (const part of parts) {
    if (part.type === "text" && part.text !== "")
      content.push({ type: "text", text: part.text.toWellFormed() })
    if (part.type !== "file") continue
    const file = convertFile(part, model)
    if (file !== undefined) content.push(file)
  }
  return content.length > 0 ? [{ role: "user", content }] : []
}

type AssistantContent = Extract<LanguageModelV4Message, { role: "assistant" }>["content"]

/** What the model said and called, and the results of its calls. Nothing where there is no more of it than thoughts. */
export function convertAssistant(
  { message, parts }: MessageWithParts,
  model: ModelInfo,
): LanguageModelV4Message[] {
  const isOwn = isFrom(message, model)
  const content: AssistantContent = []
  const calls: ToolPart[] = []
  for (const part of parts) {
    if (part.type !== "text" && part.type !== "reasoning" && part.type !== "tool") continue
    // Not the model's own call: its result stands in that of the call which made it.
    if (part.type === "tool" && part.parentCallID !== undefined) continue
    const metadata = isOwn ? part.metadata : undefined
    const options = metadata && { providerOptions: metadata as SharedV4ProviderOptions }
    if (part.type === "text") {
      if (part.text.trim() === "" && !options) continue
      content.push({ type: "text", text: part.text.toWellFormed(), ...options })
    } else if (part.type === "reasoning") {
      if (isOwn) content.push({ type: "reasoning", text: part.text.toWellFormed(), ...options })
    } else {
      calls.push(part)
      const { callID, name } = namesOf(part, model)
      const input = wellFormed(part.state.input)
      content.push({ type: "tool-call", toolCallId: callID, toolName: name, input, ...options })
    }
  }
  if (!content.some((part) => part.type !== "reasoning")) return []
  const thinks = content.some((part) => part.type === "reasoning" && part.text !== "")
  const providerOptions = thinks ? undefined : quirksOf(model).withoutThoughts
  const said = { role: "assistant" as const, content, ...(providerOptions && { providerOptions }) }
  return [said, ...convertResults(calls, model)]
}

function isFrom(message: Message, model: ModelInfo): boolean {
  return modelName(message.model) === modelName(model.ref)
}

/** A name or id that the server would refuse must not spoil every request from then on. */
function namesOf(part: ToolPart, model: ModelInfo): { callID: string; name: string } {
  const { callID } = quirksOf(model)
  return {
    callID: callID?.(part.callID) ?? part.callID,
    name: part.tool.replaceAll(/[^A-Za-z0-9_-]/g, "_").slice(0, 64) || "unnamed",
  }
}

function convertResults(calls: readonly ToolPart[], model: ModelInfo): LanguageModelV4Message[] {
  if (calls.length === 0) return []
  const { filesInResults } = habits[model.family ?? "openai-compatible"]
  const following: (LanguageModelV4TextPart | LanguageModelV4FilePart)[] = []
  const content = calls.map((part) => {
    const { callID, name } = namesOf(part, model)
    const { text, files } = resultOf(part, model)
    let output: LanguageModelV4ToolResultOutput = { type: "text", value: text }
    if (files.length > 0 && filesInResults) {
      // Anthropic refuses texts without anything in them.
      const words = text.trim() === "" ? [] : [{ type: "text" as const, text }]
      output = { type: "content", value: [...words, ...files] }
    } else if (files.length > 0) {
      following.push({ type: "text", text: `What the ${name} call ${callID} returned:` }, ...files)
    }
    return { type: "tool-result" as const, toolCallId: callID, toolName: name, output }
  })
  const results: LanguageModelV4Message[] = [{ role: "tool", content }]
  if (following.length > 0) results.push({ role: "user", content: following })
  return results
}

function resultOf({ state }: ToolPart, model: ModelInfo): { text: string; files: LanguageModelV4FilePart[] } {
  switch (state.status) {
    case "completed": {
      if (state.pruned !== undefined) return { text: prunedText(state.pruned), files: [] }
      const converted = (state.attachments ?? []).map((file) => convertFile(file, model))
      const notes = converted.flatMap((part) => (part?.type === "text" ? [part.text] : []))
      return {
        text: [state.output, ...notes].join("\n").toWellFormed(),
        files: converted.filter((part) => part?.type === "file"),
      }
    }
    case "error":
      return { text: `Error: ${state.error.toWellFormed()}`, files: [] }
    case "running":
      return {
        text: `Error: The call was interrupted while it ran. ${describeEffect(state)}`,
        files: [],
      }
    case "pending":
      return { text: "Error: The call was interrupted before it started; it had no effect.", files: [] }
  }
}

/** What the model reads in place of an output that was taken out to save room. */
export function prunedText(path: string): string {
  return `[This output was removed to save room. All of it is in ${path}]`
}

/** Half a surrogate pair is legal in JavaScript and JSON escapes, and refused by many servers. */
function wellFormed(value: unknown): unknown {
  if (typeof value === "string") return value.toWellFormed()
  if (Array.isArray(value)) return value.map(wellFormed)
  if (!isRecord(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key.toWellFormed(), wellFormed(inner)]),
  )
}

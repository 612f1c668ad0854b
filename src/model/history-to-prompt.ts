import type {
  LanguageModelV4FilePart,
  LanguageModelV4Message,
  LanguageModelV4Prompt,
  LanguageModelV4TextPart,
  LanguageModelV4ToolResultOutput,
  SharedV4ProviderOptions,
} from "@ai-sdk/provider"
import type { Message, MessageWithParts } from "../schema/message.ts"
import type { ToolPart } from "../schema/part.ts"
import { describeEffect } from "../schema/tool-moves.ts"
import { isRecord } from "../util/json.ts"
import { markForCache } from "./cache-marks.ts"
import { convertFile } from "./convert-file.ts"
import { type ModelInfo, modelName, type ProviderFamily } from "./model.ts"
import { quirksOf } from "./quirks.ts"

/** A stored conversation and the model that continues it. */
export interface PromptInput {
  /** System prompts, in order. */
  system: readonly string[]
  messages: readonly MessageWithParts[]
  model: ModelInfo
}

/**
 * Converts the history to the format of the provider interface. Every call gets exactly one result. One message
 * contains all results of a step, in the order of the calls. The result of a failed call begins with `Error: `. A call
 * without a result is reported as interrupted. Drops empty messages, nested calls, and reasoning from other models.
 */
export function toPrompt(input: PromptInput): LanguageModelV4Prompt {
  return createPromptBuilder()(input)
}

/**
 * Creates a {@link toPrompt} function for one session. The function returns the same objects for messages that can no
 * longer change, because request bodies are cached by message object. Messages with a cache mark are new objects.
 */
export function createPromptBuilder(): (input: PromptInput) => LanguageModelV4Prompt {
  /** Settled messages by their position in the history. */
  let kept: (Kept | undefined)[] = []
  let keptFor: string | undefined
  let keptSystem: readonly LanguageModelV4Message[] = []

  return ({ system, messages, model }) => {
    const wanted = `${modelName(model.ref)} ${model.family} ${model.attachment}`
    if (wanted !== keptFor) kept = []
    keptFor = wanted

    keptSystem = system.filter((text) => text !== "").map((text) => systemMessage(text, keptSystem))
    const prompt: LanguageModelV4Prompt = [...keptSystem]
    kept.length = messages.length
    messages.forEach((entry, index) => {
      const { parts } = entry
      let current = kept[index]
      if (
        current?.entry !== entry ||
        current.partCount !== parts.length ||
        current.lastPartID !== parts.at(-1)?.id
      ) {
        current = convert(entry, model)
        kept[index] = isSettled(entry) ? current : undefined
      }
      for (const message of current.converted) prompt.push(message)
    })
    const { afterResults, cacheMark } = quirksOf(model)
    return markForCache(fillGaps(prompt, afterResults), cacheMark)
  }
}

function systemMessage(text: string, known: readonly LanguageModelV4Message[]): LanguageModelV4Message {
  const content = text.toWellFormed()
  return known.find((message) => message.content === content) ?? { role: "system", content }
}

const gaps = new Map<string, LanguageModelV4Message>()

/**
 * Inserts an assistant message with the text between tool results and a user message. Without a text, returns the
 * prompt unchanged.
 */
function fillGaps(prompt: LanguageModelV4Prompt, text: string | undefined): LanguageModelV4Prompt {
  if (text === undefined) return prompt
  const gap = gaps.get(text) ?? { role: "assistant", content: [{ type: "text", text }] }
  gaps.set(text, gap)
  return prompt.flatMap((message, index) =>
    message.role === "user" && prompt[index - 1]?.role === "tool" ? [gap, message] : [message],
  )
}

/** A converted message, with values that show whether parts have been added or removed since the conversion. */
interface Kept {
  entry: MessageWithParts
  converted: readonly LanguageModelV4Message[]
  partCount: number
  lastPartID: string | undefined
}

function convert(entry: MessageWithParts, model: ModelInfo): Kept {
  const { message, parts } = entry
  const converted = message.role === "user" ? convertUser(entry, model) : convertAssistant(entry, model)
  return { entry, converted, partCount: parts.length, lastPartID: parts.at(-1)?.id }
}

/** Returns true if the message can no longer change. */
function isSettled({ message, parts }: MessageWithParts): boolean {
  if (message.role === "user") return true
  if (message.time.completed === undefined) return false
  return parts.every((part) => part.type !== "tool" || hasEnded(part))
}

function hasEnded({ state }: ToolPart): boolean {
  return state.status === "completed" || state.status === "error"
}

/** A provider family's requirements for the history. */
interface Requirements {
  /** Whether tool results can contain files. If not true, the files follow in a user message. */
  filesInResults?: boolean
  /** Whether the arguments of a call can be text. If false, they must be an object. */
  textArguments?: boolean
}

const requirements: Record<ProviderFamily, Requirements> = {
  "openai-compatible": { textArguments: true },
  openai: { textArguments: true },
  anthropic: { filesInResults: true },
  google: { filesInResults: true },
  other: {},
}

/** Converts the texts and files in a user message. */
function convertUser({ parts }: MessageWithParts, model: ModelInfo): LanguageModelV4Message[] {
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

/**
 * Converts an assistant message and the results of its calls. Returns an empty list if the message has neither text nor
 * calls.
 */
function convertAssistant({ message, parts }: MessageWithParts, model: ModelInfo): LanguageModelV4Message[] {
  const isOwn = isFrom(message, model)
  const content: AssistantContent = []
  const calls: ToolPart[] = []
  for (const part of parts) {
    if (part.type !== "text" && part.type !== "reasoning" && part.type !== "tool") continue
    // Skips a nested call, because the result of the outer call contains the result of the nested call.
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
      const input = argumentsOf(part, model)
      content.push({ type: "tool-call", toolCallId: callID, toolName: name, input, ...options })
    }
  }
  if (!content.some((part) => part.type !== "reasoning")) return []
  const thinks = content.some((part) => part.type === "reasoning" && part.text !== "")
  const providerOptions = thinks ? undefined : quirksOf(model).withoutReasoning
  const answer = { role: "assistant" as const, content, providerOptions }
  return [answer, ...convertResults(calls, model)]
}

function isFrom(message: Message, model: ModelInfo): boolean {
  return modelName(message.model) === modelName(model.ref)
}

/** Returns the arguments as the model wrote them. Malformed arguments are text, or an object that contains the text. */
function argumentsOf({ state }: ToolPart, { family }: ModelInfo): unknown {
  if (state.status !== "error" || state.raw === undefined) return wellFormed(state.input)
  const raw = state.raw.toWellFormed()
  return family !== undefined && requirements[family].textArguments ? raw : malformedArguments(raw)
}

/** Wraps malformed arguments for servers that accept only an object. */
export function malformedArguments(raw: string): Record<string, unknown> {
  return { malformed: raw }
}

/**
 * Returns a valid call id and tool name, because an invalid id or name in the history would make every later request
 * fail.
 */
function namesOf(part: ToolPart, model: ModelInfo): { callID: string; name: string } {
  const { callID } = quirksOf(model)
  return {
    callID: callID?.(part.callID) ?? part.callID,
    name: part.tool.replaceAll(/[^A-Za-z0-9_-]/g, "_").slice(0, 64) || "unnamed",
  }
}

function convertResults(calls: readonly ToolPart[], model: ModelInfo): LanguageModelV4Message[] {
  if (calls.length === 0) return []
  const { filesInResults } = requirements[model.family ?? "openai-compatible"]
  const following: (LanguageModelV4TextPart | LanguageModelV4FilePart)[] = []
  const content = calls.map((part) => {
    const { callID, name } = namesOf(part, model)
    const { text, files } = resultOf(part, model)
    let output: LanguageModelV4ToolResultOutput = { type: "text", value: text }
    if (files.length > 0 && filesInResults) {
      // Omits empty texts, because Anthropic rejects them.
      const words = text.trim() === "" ? [] : [{ type: "text" as const, text }]
      output = { type: "content", value: [...words, ...files] }
    } else if (files.length > 0) {
      following.push({ type: "text", text: `Files returned by the ${name} call ${callID}:` }, ...files)
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
        text: `Error: The call was interrupted while it was running. ${describeEffect(state)}`,
        files: [],
      }
    case "pending":
      return { text: "Error: The call was interrupted before it started, so it had no effect.", files: [] }
  }
}

/** Returns the text that replaces a removed tool output. `path` is the file with the full output. */
export function prunedText(path: string): string {
  return `[This output was removed to save space. The full output is in ${path}]`
}

/** Replaces lone surrogates. They are valid in JavaScript, but many servers reject them. */
function wellFormed(value: unknown): unknown {
  if (typeof value === "string") return value.toWellFormed()
  if (Array.isArray(value)) return value.map(wellFormed)
  if (!isRecord(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key.toWellFormed(), wellFormed(inner)]),
  )
}

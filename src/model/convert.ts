import type { LanguageModelV4Message, LanguageModelV4Prompt } from "@ai-sdk/provider"
import type { MessageWithParts } from "../schema/message.ts"
import type { ToolPart } from "../schema/part.ts"
import { markForCache } from "./cache-marks.ts"
import { convertAssistant, convertUser } from "./convert-message.ts"
import { type ModelInfo, modelName } from "./model.ts"
import { quirksOf } from "./quirks.ts"

/** A conversation as it is stored, and the model that is to go on with it. */
export interface PromptInput {
  /** System prompts in order. */
  system: readonly string[]
  messages: readonly MessageWithParts[]
  model: ModelInfo
}

/**
 * The history as the provider interface wants it. Every call has exactly one result, in the order of the calls, in one
 * message after the one that made them; a failed call's result begins with `Error: `, and a call without a result says
 * that it was interrupted. Messages without content are left out; what another model thought is left out too.
 */
export function toPrompt(input: PromptInput): LanguageModelV4Prompt {
  return createPromptBuilder()(input)
}

/** {@link toPrompt} for one session: messages that can no longer change are converted once and kept by their id. */
export function createPromptBuilder(): (input: PromptInput) => LanguageModelV4Prompt {
  const kept = new Map<string, Kept>()
  let keptFor: string | undefined
  let keptSystem: readonly LanguageModelV4Message[] = []

  return ({ system, messages, model }) => {
    const wanted = `${modelName(model.ref)} ${model.family} ${model.attachment}`
    if (wanted !== keptFor) kept.clear()
    keptFor = wanted

    // The same objects where the text is the same: what is made of a message is kept by its object.
    keptSystem = system.filter((text) => text !== "").map((text) => systemMessage(text, keptSystem))
    const prompt: LanguageModelV4Prompt = [...keptSystem]
    for (const entry of messages) {
      const { message, parts } = entry
      let current = kept.get(message.id)
      if (current?.lastPartID !== parts.at(-1)?.id || current?.partCount !== parts.length) {
        current = convert(entry, model)
        if (isSettled(entry)) kept.set(message.id, current)
      }
      prompt.push(...current.converted)
    }
    // Messages that are gone, such as compacted ones, are not kept for ever.
    if (kept.size > 2 * messages.length) for (const id of idsWithout(kept, messages)) kept.delete(id)
    const { afterResults, cacheMark } = quirksOf(model)
    return markForCache(fillGaps(prompt, afterResults), cacheMark)
  }
}

function systemMessage(text: string, known: readonly LanguageModelV4Message[]): LanguageModelV4Message {
  const content = text.toWellFormed()
  return known.find((message) => message.content === content) ?? { role: "system", content }
}

/** Puts words of the model's between results and a message of the person's. */
function fillGaps(prompt: LanguageModelV4Prompt, text: string | undefined): LanguageModelV4Prompt {
  if (text === undefined) return prompt
  return prompt.flatMap((message, index) =>
    message.role === "user" && prompt[index - 1]?.role === "tool"
      ? [{ role: "assistant", content: [{ type: "text", text }] }, message]
      : [message],
  )
}

function idsWithout(kept: ReadonlyMap<string, Kept>, messages: readonly MessageWithParts[]): string[] {
  const present = new Set(messages.map(({ message }) => message.id))
  return [...kept.keys()].filter((id) => !present.has(id))
}

/** A converted message, with what tells whether parts were added or removed since. */
interface Kept {
  converted: readonly LanguageModelV4Message[]
  partCount: number
  lastPartID: string | undefined
}

function convert(entry: MessageWithParts, model: ModelInfo): Kept {
  const { message, parts } = entry
  const converted = message.role === "user" ? convertUser(entry, model) : convertAssistant(entry, model)
  return { converted, partCount: parts.length, lastPartID: parts.at(-1)?.id }
}

/** Nothing of it will change any more. */
function isSettled({ message, parts }: MessageWithParts): boolean {
  if (message.role === "user") return true
  if (message.time.completed === undefined) return false
  return parts.every((part) => part.type !== "tool" || hasEnded(part))
}

function hasEnded({ state }: ToolPart): boolean {
  return state.status === "completed" || state.status === "error"
}

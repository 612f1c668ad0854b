import type { LanguageModelV4Message, LanguageModelV4Prompt, SharedV4ProviderOptions } from "@ai-sdk/provider"
import { isRecord } from "../util/json.ts"

/**
 * Provider options that mark a message for the server's cache. System and assistant messages carry both marks on the
 * message.
 */
export interface CacheMark {
  /**
   * Mark for the final part of a user or tool message. Most packages apply a mark on a tool message to each of its
   * results.
   */
  part: SharedV4ProviderOptions
  /** Mark for the message itself, for packages that read marks on messages. */
  message?: SharedV4ProviderOptions
}

/** Maximum number of marked messages at each end of the prompt. Anthropic accepts four marks in total. */
const marksAtEachEnd = 2

/** Marks the first system prompts and the final messages. Marks copies, because prompts share message objects. */
export function markForCache(
  prompt: LanguageModelV4Prompt,
  mark: CacheMark | undefined,
): LanguageModelV4Prompt {
  if (mark === undefined) return prompt
  const system = prompt.filter(({ role }) => role === "system").slice(0, marksAtEachEnd)
  const last = prompt.filter(({ role }) => role !== "system").slice(-marksAtEachEnd)
  const marked = new Set([...system, ...last])
  return prompt.map((message) => (marked.has(message) ? withMark(message, mark) : message))
}

function withMark(
  message: LanguageModelV4Message,
  { part, message: whole }: CacheMark,
): LanguageModelV4Message {
  switch (message.role) {
    case "user":
      return withOptions({ ...message, content: markLast(message.content, part) }, whole)
    case "tool":
      return withOptions({ ...message, content: markLast(message.content, part) }, whole)
    default:
      return withOptions(message, { ...part, ...whole })
  }
}

function markLast<P extends WithOptions>(parts: readonly P[], mark: SharedV4ProviderOptions): P[] {
  return parts.map((part, index) => (index === parts.length - 1 ? withOptions(part, mark) : part))
}

interface WithOptions {
  providerOptions?: SharedV4ProviderOptions
}

/** Adds options to the existing ones. */
function withOptions<T extends WithOptions>(carrier: T, options: SharedV4ProviderOptions | undefined): T {
  return options === undefined
    ? carrier
    : { ...carrier, providerOptions: { ...carrier.providerOptions, ...options } }
}

/**
 * Name of the message field that contains a cache mark until {@link marksIntoTexts} moves the mark to the message's
 * text.
 */
export const markInText = "tackle_cache_control"

/**
 * Moves each {@link markInText} mark in a Chat Completions body to its message's text. The message's content becomes a
 * list of parts. A message without text loses its mark.
 */
export function marksIntoTexts(body: Record<string, unknown>): Record<string, unknown> {
  const { messages } = body
  return Array.isArray(messages) ? { ...body, messages: messages.map(intoText) } : body
}

function intoText(message: unknown): unknown {
  if (!isRecord(message)) return message
  const { [markInText]: mark, content, ...rest } = message
  if (Array.isArray(content)) return { ...message, content: content.map(named) }
  if (mark === undefined) return message
  if (typeof content !== "string" || content === "") return { ...rest, content }
  return { ...rest, content: [{ type: "text", text: content, cache_control: mark }] }
}

/** Renames the mark of a content part to `cache_control`. */
function named(part: unknown): unknown {
  if (!isRecord(part) || part[markInText] === undefined) return part
  const { [markInText]: mark, ...rest } = part
  return { ...rest, cache_control: mark }
}

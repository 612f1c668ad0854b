import type { LanguageModelV4Message, LanguageModelV4Prompt, SharedV4ProviderOptions } from "@ai-sdk/provider"
import { isRecord } from "../util/json.ts"

/** Options that mark a message. System prompts and what the model said get both halves, since their parts have none. */
export interface CacheMark {
  /** On the last part of what a person or tools said: most packages put a mark on every result that is beside another. */
  part: SharedV4ProviderOptions
  /** On the message, for packages that look there. */
  message?: SharedV4ProviderOptions
}

/** So many of the first system prompts are marked, and of the last messages. Anthropic takes four marks. */
const marksAtEachEnd = 2

/** The kept messages are shared between prompts, so marks go on copies, beside what they have. */
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

/** Beside those that it has. */
function withOptions<T extends WithOptions>(carrier: T, options: SharedV4ProviderOptions | undefined): T {
  return options === undefined
    ? carrier
    : { ...carrier, providerOptions: { ...carrier.providerOptions, ...options } }
}

/** A field of a message in a request's body: the mark for the cache that belongs into its text. */
export const markInText = "tackle_cache_control"

/**
 * The body of a chat completions request with every such mark on the last text of its message, which becomes a list
 * for it. A message without a text loses the mark: there is nowhere to put it.
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

/** The part of a list that has the mark: there it only wants its right name. */
function named(part: unknown): unknown {
  if (!isRecord(part) || part[markInText] === undefined) return part
  const { [markInText]: mark, ...rest } = part
  return { ...rest, cache_control: mark }
}

import type { LanguageModelV4Message, LanguageModelV4Prompt, SharedV4ProviderOptions } from "@ai-sdk/provider"
import type { CacheMark } from "./quirks.ts"

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
  { message: whole, part }: CacheMark,
): LanguageModelV4Message {
  const { role, providerOptions } = message
  if (role === "user")
    return {
      ...message,
      content: markLast(message.content, part),
      providerOptions: { ...providerOptions, ...whole },
    }
  if (role === "tool")
    return {
      ...message,
      content: markLast(message.content, part),
      providerOptions: { ...providerOptions, ...whole },
    }
  return { ...message, providerOptions: { ...providerOptions, ...whole, ...part } }
}

function markLast<P extends { providerOptions?: SharedV4ProviderOptions }>(
  parts: readonly P[],
  mark: SharedV4ProviderOptions,
): P[] {
  return parts.map((part, index) =>
    index === parts.length - 1 ? { ...part, providerOptions: { ...part.providerOptions, ...mark } } : part,
  )
}

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

import { isRecord } from "../util/json.ts"

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

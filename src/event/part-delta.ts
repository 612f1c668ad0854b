import type { Part } from "../schema/part.ts"
import type { EventOf } from "./events.ts"

/**
 * Returns the part with the text of a `part.delta` event appended. Returns the part unchanged if the part cannot
 * contain the text.
 */
export function withDelta(
  part: Part,
  { field, delta }: Pick<EventOf<"part.delta">, "field" | "delta">,
): Part {
  if (field === "text")
    return part.type === "text" || part.type === "reasoning" ? { ...part, text: part.text + delta } : part
  if (part.type !== "tool" || part.state.status !== "pending") return part
  return { ...part, state: { ...part.state, raw: part.state.raw + delta } }
}

/** Returns true for a text part, a reasoning part or a call that the model has started but not completed. */
export function isStreaming(part: Part): boolean {
  if (part.type === "tool") return part.state.status === "pending"
  if (part.type !== "text" && part.type !== "reasoning") return false
  // Text from the user has no time.
  return part.time !== undefined && part.time.end === undefined
}

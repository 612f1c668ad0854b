import { prunedText } from "../model/convert.ts"
import type { MessageWithParts } from "../schema/message.ts"
import type { CompactionPart, Part } from "../schema/part.ts"

/** What the model is given of a history: after a compaction its summary, and the messages from its `from` on. */
export function promptHistory(history: readonly MessageWithParts[]): readonly MessageWithParts[] {
  const { summary, start } = lastSummary(history)
  if (!summary) return history
  return [summary, ...history.slice(start).filter((entry) => compactionOf(entry) === undefined)]
}

/**
 * Takes out of a history what a summary stands for, so that a long session holds in memory what the model is given and
 * no more. {@link promptHistory} gives the same of it as before.
 */
export function dropSummed(history: MessageWithParts[]): void {
  history.splice(0, lastSummary(history).start)
}

/** The newest summary, and where in the history begins what is given along with it. */
function lastSummary(history: readonly MessageWithParts[]): { summary?: MessageWithParts; start: number } {
  const place = history.findLastIndex((entry) => compactionOf(entry) !== undefined)
  const summary = history[place]
  if (!summary) return { start: 0 }
  const from = compactionOf(summary)?.from
  const kept = history.findIndex(({ message }) => message.id === from)
  return { summary, start: from === undefined || kept < 0 ? place : kept }
}

/** The part that makes a message, said in the person's place, the summary of those before it. */
export function compactionOf({ message, parts }: MessageWithParts): CompactionPart | undefined {
  // Asked of the whole history at each step: most of it is the model's.
  return message.role === "user" ? parts.find((part) => part.type === "compaction") : undefined
}

/** Characters that an image or another file stands for: providers count some 1,500 tokens, at 4 characters each. */
const fileCharacters = 6_000

/** How much of the model's context messages take, in characters. An estimate to compare with others. */
export function sizeOf(messages: readonly MessageWithParts[]): number {
  return messages.reduce(
    (sum, { parts }) => sum + parts.reduce((size, part) => size + sizeOfPart(part), 0),
    0,
  )
}

function sizeOfPart(part: Part): number {
  switch (part.type) {
    case "text":
    case "reasoning":
      return part.text.length
    case "file":
      return fileCharacters
    case "tool": {
      if (part.parentCallID !== undefined) return 0
      const { state } = part
      const input = JSON.stringify(state.input).length
      if (state.status === "error") return input + state.error.length
      if (state.status !== "completed") return input
      if (state.pruned !== undefined) return input + prunedText(state.pruned).length
      return input + state.output.length + (state.attachments?.length ?? 0) * fileCharacters
    }
    default:
      return 0
  }
}

import { prunedText } from "../model/history-to-prompt.ts"
import type { MessageWithParts } from "../schema/message.ts"
import type { CompactionPart, Part } from "../schema/part.ts"
import type { MessagePage } from "../store/store.ts"

/** Reads one page of a session's messages. */
export type PageReader = (page: MessagePage) => Promise<MessageWithParts[]>

/** Number of messages per page. The number is low because each message may contain several outputs of 50 KB. */
const pageSize = 100

/**
 * Yields the messages of a session page by page, oldest first, so that a long session is never completely in memory.
 * With `before`, yields only the messages before that message.
 */
export async function* historyPages(read: PageReader, before?: string): AsyncGenerator<MessageWithParts[]> {
  const kind = { limit: pageSize, from: "oldest", before } as const
  let page = await read(kind)
  for (let last = page.at(-1); last; last = page.at(-1)) {
    yield page
    if (page.length < pageSize) return
    page = await read({ ...kind, after: last.message.id })
  }
}

/** Returns the newest message that satisfies `fits`, or undefined if no message does. Searches from the end. */
export async function findNewest(
  read: PageReader,
  fits: (entry: MessageWithParts) => boolean,
): Promise<MessageWithParts | undefined> {
  let page = await read({ limit: pageSize })
  for (let first = page[0]; first; first = page[0]) {
    const found = page.findLast(fits)
    if (found) return found
    page = await read({ before: first.message.id, limit: pageSize })
  }
  return undefined
}

/**
 * Yields the pages needed to continue a session, oldest first. If the newest summary lists the files that the session
 * has read, skips the pages that the summary replaces.
 */
export async function* neededPages(read: PageReader): AsyncGenerator<MessageWithParts[]> {
  const pages: MessageWithParts[][] = []
  let summary: MessageWithParts | undefined
  let page = await read({ limit: pageSize })
  for (let first = page[0]; first; first = page[0]) {
    pages.unshift(page)
    summary ??= page.findLast((entry) => compactionOf(entry) !== undefined)
    const compaction = summary && compactionOf(summary)
    if (compaction && compaction.seen === undefined) {
      yield* historyPages(read, first.message.id)
      break
    }
    if (summary && first.message.id <= (compaction?.from ?? summary.message.id)) break
    page = await read({ before: first.message.id, limit: pageSize })
  }
  yield* pages
}

/**
 * Returns the messages of a history that the model receives. After a compaction, these are the newest summary and the
 * messages from its `from` onward, without older summaries. If `from` is absent, only messages after the summary
 * follow.
 */
export function promptHistory(history: readonly MessageWithParts[]): readonly MessageWithParts[] {
  const { summary, start } = lastSummary(history)
  if (!summary) return history
  return [summary, ...history.slice(start).filter((entry) => compactionOf(entry) === undefined)]
}

/**
 * Removes from the list the messages that a summary replaces, to save memory. Does not change the result of {@link
 * promptHistory}.
 */
export function dropSummed(history: MessageWithParts[]): void {
  history.splice(0, lastSummary(history).start)
}

/** Returns the newest summary and the index of the first message that is kept with it. */
function lastSummary(history: readonly MessageWithParts[]): { summary?: MessageWithParts; start: number } {
  const place = history.findLastIndex((entry) => compactionOf(entry) !== undefined)
  const summary = history[place]
  if (!summary) return { start: 0 }
  const from = compactionOf(summary)?.from
  // While pages are loaded, the message `from` of an older summary may not be in the list.
  const start = history.findIndex(
    ({ message }, index) => index === place || (from !== undefined && message.id >= from),
  )
  return { summary, start }
}

/** Returns a message's compaction part, or undefined if the message is not a summary. */
export function compactionOf({ message, parts }: MessageWithParts): CompactionPart | undefined {
  // Checks the role first, because this function scans the whole history at each step and most messages are the
  // model's.
  return message.role === "user" ? parts.find((part) => part.type === "compaction") : undefined
}

/**
 * Number of characters counted for an image or another file. Providers count about 1,500 tokens, at 4 characters each.
 */
const fileCharacters = 6_000

/** Returns the estimated size of messages in the context, in characters. */
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
      if (state.status === "error") return (state.raw?.length ?? input) + state.error.length
      if (state.status !== "completed") return input
      if (state.pruned !== undefined) return input + prunedText(state.pruned).length
      return input + state.output.length + (state.attachments?.length ?? 0) * fileCharacters
    }
    default:
      return 0
  }
}

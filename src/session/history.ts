import { prunedText } from "../model/convert.ts"
import type { MessageWithParts } from "../schema/message.ts"
import type { CompactionPart, Part } from "../schema/part.ts"
import type { MessagePage } from "../store/store.ts"

/** Reads a page of one session. */
export type PageReader = (page: MessagePage) => Promise<MessageWithParts[]>

/** Messages that are read at once: few enough to hold, though each may have several outputs of 50 KB. */
export const pageSize = 100

/**
 * All messages of a session, or those before one of them, oldest first, a page at a time: the whole of a long one is
 * never in memory.
 */
export async function* historyPages(read: PageReader, before?: string): AsyncGenerator<MessageWithParts[]> {
  const kind = { limit: pageSize, from: "oldest", ...(before === undefined ? {} : { before }) } as const
  let page = await read(kind)
  for (let last = page.at(-1); last; last = page.at(-1)) {
    yield page
    if (page.length < pageSize) return
    page = await read({ ...kind, after: last.message.id })
  }
}

/** The newest message that `fits`, looked for from the end of the session on. */
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
 * The pages of a session that it takes to go on with it, oldest first: from where its newest summary leads on, where
 * that says which files were seen before it; all of them where there is no summary, or one that does not say it.
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

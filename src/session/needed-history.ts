import type { MessageWithParts } from "../schema/message.ts"
import { historyPages, type PageReader, pageSize } from "./history.ts"
import { compactionOf } from "./prompt-history.ts"

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

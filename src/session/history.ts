import type { MessageWithParts } from "../schema/message.ts"
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

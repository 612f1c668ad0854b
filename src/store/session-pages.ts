import type { Session } from "../schema/session.ts"
import type { ListedRow, SessionFilter, Store } from "./store.ts"

/** Number of sessions in one page. */
const pageSize = 200

/**
 * Yields the sessions that a filter selects, page by page, so that a large list is never completely in memory and other
 * work continues between two pages. A session that changes in the meantime can be missing or occur twice.
 */
export async function* sessionPages(
  store: Pick<Store, "page">,
  filter: Omit<SessionFilter, "after" | "limit">,
): AsyncGenerator<ListedRow[]> {
  for (let after: string | undefined; ; ) {
    const page = await store.page({ ...filter, after, limit: pageSize })
    if (page.length > 0) yield page
    if (page.length < pageSize) return
    after = page.at(-1)?.cursor
  }
}

/** Returns all subagent sessions of a session, or all sessions of the store for an export. */
export async function allSessions(
  store: Pick<Store, "page">,
  filter: Pick<SessionFilter, "parentID"> = {},
): Promise<Session[]> {
  const found: Session[] = []
  for await (const page of sessionPages(store, filter)) found.push(...page.map(({ session }) => session))
  return found
}

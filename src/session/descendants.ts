import type { Session } from "../schema/session.ts"
import type { Store } from "../store/store.ts"

/** The sessions that the subagents of one worked in, at any depth, a parent before its children. */
export async function descendants(store: Store, parentID: string): Promise<Session[]> {
  const found: Session[] = []
  const children = await store.sessions({ parentID, limit: Number.MAX_SAFE_INTEGER })
  for (const child of children.sort((a, b) => (a.id < b.id ? -1 : 1))) {
    found.push(child, ...(await descendants(store, child.id)))
  }
  return found
}

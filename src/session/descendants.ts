import type { Session } from "../schema/session.ts"
import type { Store } from "../store/store.ts"

/** The sessions that the subagents of one worked in, at any depth, a parent before its children. */
export async function descendants(store: Pick<Store, "sessions">, parentID: string): Promise<Session[]> {
  const found: Session[] = []
  const children = await store.sessions({ parentID, limit: Number.MAX_SAFE_INTEGER })
  for (const child of children.sort((a, b) => (a.id < b.id ? -1 : 1))) {
    found.push(child, ...(await descendants(store, child.id)))
  }
  return found
}

/**
 * The ids of all that work on one request: the session at the top and all below it. Of a session that is not in the
 * store, its own.
 */
export async function familyOf(store: Pick<Store, "session" | "sessions">, id: string): Promise<string[]> {
  let root = id
  for (
    let parentID = await parentOf(store, id);
    parentID !== undefined;
    parentID = await parentOf(store, root)
  )
    root = parentID
  return [root, ...(await descendants(store, root)).map((session) => session.id)]
}

/** Undefined for one at the top, and for one whose parent is gone. */
async function parentOf(store: Pick<Store, "session">, id: string): Promise<string | undefined> {
  const parentID = (await store.session(id))?.parentID
  return parentID === undefined ? undefined : (await store.session(parentID))?.id
}

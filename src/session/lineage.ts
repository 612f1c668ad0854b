import type { Session } from "../schema/session.ts"
import type { Store } from "../store/store.ts"
import { TackleError } from "../util/errors.ts"

/** Which session started which: for what holds in a whole family, such as bounds, grants and depth. */
export interface Lineage {
  /** Reads the sessions above this one. Throws where one of them is gone. */
  load(session: Family): Promise<void>
  /** The sessions above, the nearest first, as they are now. Throws for what was not loaded. */
  above(session: Family): Session[]
  /** The id of the session at the top; of a session that is not known, its own. */
  rootOf(id: string): string
}

type Family = Pick<Session, "id" | "parentID">

/** A session whose parent is gone may not work: nobody could say any more what it may do. */
export class OrphanError extends TackleError {
  constructor(id: string, parentID: string) {
    super(
      `Session ${id} was started by ${parentID}, which is gone; what it may do hung on that. Begin a new one.`,
      {
        code: "session.orphan",
        recoverable: false,
      },
    )
  }
}

/** `live` gives a session that is open in this process, which may be newer than what was read. */
export function createLineage(
  store: Pick<Store, "session">,
  live: (id: string) => Session | undefined,
): Lineage {
  const known = new Map<string, Session>()
  const find = (id: string) => live(id) ?? known.get(id)

  return {
    async load(session) {
      for (let below = session; below.parentID !== undefined; ) {
        const parent = find(below.parentID) ?? (await store.session(below.parentID))
        if (!parent) throw new OrphanError(below.id, below.parentID)
        known.set(parent.id, parent)
        below = parent
      }
    },
    above(session) {
      const found: Session[] = []
      for (let below = session; below.parentID !== undefined; ) {
        const parent = find(below.parentID)
        if (!parent) throw new OrphanError(below.id, below.parentID)
        found.push(parent)
        below = parent
      }
      return found
    },
    rootOf(id) {
      for (let root = id; ; ) {
        const parentID = find(root)?.parentID
        if (parentID === undefined) return root
        root = parentID
      }
    },
  }
}

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

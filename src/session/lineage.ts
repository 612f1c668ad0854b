import type { Session } from "../schema/session.ts"
import { allSessions } from "../store/session-pages.ts"
import type { Store } from "../store/store.ts"
import { TackleError } from "../util/errors.ts"

/**
 * Tracks the parents of sessions. Permission limits, grants and the depth limit apply to a session and all of its
 * subagents' sessions.
 */
export interface Lineage {
  /** Reads the ancestors of a session that are not known yet. Throws {@link OrphanError} if one does not exist. */
  load(session: Family): Promise<void>
  /**
   * Returns the ancestors, nearest first. Ancestors that are open in this process are in their current state. Throws
   * {@link OrphanError} if the ancestors are not loaded.
   */
  above(session: Family): Session[]
  /** Returns the id of the root session. An unknown session is its own root. */
  rootOf(id: string): string
}

type Family = Pick<Session, "id" | "parentID">

/**
 * Thrown when a session's parent no longer exists. The session cannot run, because its permissions depend on the
 * parent.
 */
class OrphanError extends TackleError {
  constructor(id: string, parentID: string) {
    super(
      `Session ${id} depends on the permissions of its parent ${parentID}, which no longer exists. Start a new session.`,
      {
        code: "session.orphan",
        recoverable: false,
      },
    )
  }
}

/**
 * Creates a lineage. `live` returns the session if it is open in this process. An open session takes precedence over
 * the stored session, because the open session may be newer.
 */
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

/** Returns the sessions of a session's subagents at any depth, parents before children. */
export async function descendants(store: Pick<Store, "page">, parentID: string): Promise<Session[]> {
  const found: Session[] = []
  const children = await allSessions(store, { parentID })
  for (const child of children.sort((a, b) => (a.id < b.id ? -1 : 1))) {
    found.push(child, ...(await descendants(store, child.id)))
  }
  return found
}

/**
 * Returns the ids of a session's root session and all sessions below that root. For a session that is not stored,
 * returns only its own id.
 */
export async function familyOf(store: Pick<Store, "session" | "page">, id: string): Promise<string[]> {
  let root = id
  for (
    let parentID = await parentOf(store, id);
    parentID !== undefined;
    parentID = await parentOf(store, root)
  )
    root = parentID
  return [root, ...(await descendants(store, root)).map((session) => session.id)]
}

/** Returns the parent's id, or undefined for a root session or if the parent no longer exists. */
async function parentOf(store: Pick<Store, "session">, id: string): Promise<string | undefined> {
  const parentID = (await store.session(id))?.parentID
  return parentID === undefined ? undefined : (await store.session(parentID))?.id
}

/** Returns true if the session `id` is `root` or below it. */
export async function isBelow(
  store: Pick<Store, "session">,
  id: string | undefined,
  root: string,
): Promise<boolean> {
  for (let each = id; each !== undefined; each = (await store.session(each))?.parentID)
    if (each === root) return true
  return false
}

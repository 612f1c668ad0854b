import type { Grant, Ruleset } from "../schema/permission.ts"
import type { Store } from "./store.ts"

/** The scope of a grant: a session and its worktree. */
export interface GrantScope {
  id: string
  worktree: string
}

/** Caches the store's grants, so that permission decisions need no query. */
export interface Grants {
  /** Reloads the scope's grants from the store, because other processes can add and remove grants. */
  load(where: GrantScope): Promise<void>
  /**
   * Adds and stores grants. Grants for a session that is not stored, such as the session of a standalone call, are kept
   * only in memory.
   */
  add(grants: readonly Grant[]): Promise<void>
  /** Removes grants. Ignores unknown ids. */
  remove(ids: readonly string[]): Promise<void>
  /** Returns the scope's grants as rules. */
  rules(where: GrantScope): Ruleset
  /** Drops a closed session's grants from memory. Stored grants remain. */
  forget(sessionID: string): void
  /** Returns all stored grants for a worktree and its sessions, oldest first. */
  list(worktree: string): Promise<Grant[]>
}

/** Creates an empty cache. Call `load` before `rules`. */
export function createGrants(store: Store): Grants {
  const known = new Map<string, Grant>()
  /** Grants that exist only in this process. */
  const unstored = new Set<string>()
  /** Ids of removed grants. A query that started before a removal may still return the removed grant. */
  const removed = new Set<string>()

  async function canBeStored({ scope, sessionID }: Grant): Promise<boolean> {
    return scope === "project" || (sessionID !== undefined && (await store.session(sessionID)) !== undefined)
  }

  return {
    async load(where) {
      // Drops grants that another process removed, but keeps grants that were added during the query.
      const before = [...known.values()].filter((grant) => appliesTo(grant, where))
      const stored = await store.grants({ worktree: where.worktree, sessionID: where.id })
      for (const { id } of before) if (!unstored.has(id)) known.delete(id)
      for (const grant of stored) if (!removed.has(grant.id)) known.set(grant.id, grant)
    },
    async add(grants) {
      const lasting: Grant[] = []
      for (const grant of grants) {
        if (await canBeStored(grant)) lasting.push(grant)
        else unstored.add(grant.id)
      }
      await store.commit(lasting.map((grant) => ({ kind: "grant", grant })))
      for (const grant of grants) known.set(grant.id, grant)
    },
    async remove(ids) {
      // Updates memory first, so that the removal takes effect here even if the store fails.
      for (const id of ids) {
        known.delete(id)
        unstored.delete(id)
        removed.add(id)
      }
      await store.commit(ids.map((grantID) => ({ kind: "grant.remove", grantID })))
    },
    forget(sessionID) {
      for (const grant of known.values()) {
        if (grant.sessionID !== sessionID) continue
        known.delete(grant.id)
        unstored.delete(grant.id)
      }
    },
    rules: (where) =>
      [...known.values()]
        .filter((grant) => appliesTo(grant, where))
        .map(({ permission, pattern, action, id }) => ({
          permission,
          pattern,
          action,
          source: { file: `grant ${id}` },
        })),
    async list(worktree) {
      return store.grants({ worktree, withSessions: true })
    },
  }
}

/** Returns true if the grant applies. Project grants apply to their worktree, session grants to their session. */
function appliesTo(grant: Grant, where: GrantScope): boolean {
  if (grant.worktree !== where.worktree) return false
  return grant.scope === "project" || grant.sessionID === where.id
}

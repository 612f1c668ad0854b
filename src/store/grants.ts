import type { Grant, Ruleset } from "../schema/permission.ts"
import type { Store } from "./store.ts"

/** Where a grant may hold: a session, and the work tree it belongs to. */
export interface GrantPlace {
  id: string
  worktree: string
}

/** The grants that policies read, kept beside the store so that a verdict needs no query. */
export interface Grants {
  /** Brings what holds in the place up to date with the store, where other processes add and take back too. */
  load(place: GrantPlace): Promise<void>
  /** Keeps grants. Those for a session that is not stored, that of a call by hand, are kept here alone. */
  add(grants: readonly Grant[]): Promise<void>
  /** Takes grants back. Unknown ids are passed over. */
  remove(ids: readonly string[]): Promise<void>
  /** What was granted in the place, as rules. */
  rules(place: GrantPlace): Ruleset
  /** Keeps nothing in memory of a session that is over. What is stored stays. */
  forget(sessionID: string): void
  /** Every stored grant of a work tree, of the project and of its sessions, oldest first. */
  list(worktree: string): Promise<Grant[]>
}

/** Knows nothing before the first `load`. */
export function createGrants(store: Store): Grants {
  const known = new Map<string, Grant>()
  /** Ids of those that nobody but this process has: their sessions are not stored. */
  const unstored = new Set<string>()
  /** An answer of the store may be older than their removal. */
  const removed = new Set<string>()

  async function canBeStored({ scope, sessionID }: Grant): Promise<boolean> {
    return scope === "project" || (sessionID !== undefined && (await store.session(sessionID)) !== undefined)
  }

  return {
    async load(place) {
      // What another process took back has to go; what is granted while the store is asked has to stay.
      const before = [...known.values()].filter((grant) => holdsIn(grant, place))
      const stored = await store.grants({ worktree: place.worktree, sessionID: place.id })
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
      // Out of use first: a store that fails must not leave them in force here.
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
    rules: (place) =>
      [...known.values()]
        .filter((grant) => holdsIn(grant, place))
        .map(({ permission, pattern, action, id }) => ({
          permission,
          pattern,
          action,
          source: { file: `grant ${id}` },
        })),
    async list(worktree) {
      const grants = await store.grants({ worktree })
      for (const { id } of await store.sessions({ worktree, limit: Number.MAX_SAFE_INTEGER })) {
        grants.push(...(await store.grants({ sessionID: id })))
      }
      return grants.sort((a, b) => a.time.created - b.time.created)
    },
  }
}

/** A grant holds in its work tree alone; one for a session in that session alone. */
function holdsIn(grant: Grant, place: GrantPlace): boolean {
  if (grant.worktree !== place.worktree) return false
  return grant.scope === "project" || grant.sessionID === place.id
}

import { hostname } from "node:os"
import type { Lease, LeaseHolder, Store } from "../store/store.ts"
import { TackleError } from "../util/errors.ts"

/** Thrown when another engine, in this or another process, is using the session. */
export class SessionHeldError extends TackleError {
  constructor(id: string, holder: LeaseHolder) {
    const where = holder.host === undefined || holder.host === hostname() ? "" : ` on ${holder.host}`
    super(
      `Session ${id} is in use by process ${holder.pid}${where}. Wait for the run of that process to end, or stop it. Nothing was changed.`,
      { code: "session.held", recoverable: false },
    )
  }
}

/**
 * Holds the exclusive right to write a session while `work` runs. Without this right, another engine could mistake the
 * running calls for calls that a crash left open. The lease of a holder that is not alive is ignored. If `work` fails,
 * `settle` closes the calls that `work` left open. If `settle` also fails, the lease is kept, and the next start of
 * Tackle closes these calls. Throws {@link SessionHeldError} before `work` starts.
 */
export async function withLease<T>(
  { store, sessionID, holder, settle = async () => {} }: Use & { settle?: () => Promise<void> },
  work: (lease: Lease) => Promise<T>,
): Promise<T> {
  const taken = await store.lease(sessionID, holder)
  if (!taken.isHeld) throw new SessionHeldError(sessionID, taken.holder)
  let isClosed = true
  try {
    return await work(taken.lease)
  } catch (error) {
    isClosed = await settle().then(
      () => true,
      () => false,
    )
    throw error
  } finally {
    if (isClosed) await store.release(taken.lease)
  }
}

/** The use of one session by one engine. */
interface Use {
  store: Store
  sessionID: string
  holder: LeaseHolder
}

/** Holds the leases of several sessions while `work` runs. See {@link withLease}. */
export function withLeases<T>(
  { store, sessionIDs, holder }: { store: Store; sessionIDs: readonly string[]; holder: LeaseHolder },
  work: () => Promise<T>,
): Promise<T> {
  return sessionIDs.reduceRight(
    (inner, sessionID) => () => withLease({ store, sessionID, holder }, inner),
    work,
  )()
}

/** Returns true if a live engine, including this one, is using one of the sessions. */
export async function isAnyHeld(store: Store, sessionIDs: readonly string[]): Promise<boolean> {
  for (const id of sessionIDs) {
    if ((await store.holder(id)) !== undefined) return true
  }
  return false
}

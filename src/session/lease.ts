import type { LeaseHolder, Store } from "../store/store.ts"
import { TackleError } from "../util/errors.ts"
import { isProcessRunning } from "../util/process-table.ts"

/** Thrown when another engine, in this or another process, is using the session. */
export class SessionHeldError extends TackleError {
  constructor(id: string, holder: LeaseHolder) {
    super(
      `Session ${id} is in use by process ${holder.pid}. Wait for the run of that process to end, or stop it. Nothing was changed.`,
      { code: "session.held", recoverable: false },
    )
  }
}

/**
 * Holds the exclusive right to write a session while `work` runs. Without this right, another engine could mistake the
 * running calls for calls that a crash left open. A lease of a dead process is ignored. If `work` fails, `settle`
 * closes the calls that `work` left open. If `settle` also fails, the lease is kept, and the next start of Tackle
 * closes these calls. Throws {@link SessionHeldError} before `work` starts.
 */
export async function withLease<T>(
  { store, sessionID, holder, settle = async () => {} }: Lease & { settle?: () => Promise<void> },
  work: () => Promise<T>,
): Promise<T> {
  const present = await store.lease(sessionID, holder, isProcessRunning)
  if (present.id !== holder.id) throw new SessionHeldError(sessionID, present)
  let isClosed = true
  try {
    return await work()
  } catch (error) {
    isClosed = await settle().then(
      () => true,
      () => false,
    )
    throw error
  } finally {
    if (isClosed) await store.release(sessionID, holder)
  }
}

/** The lease of one session for one engine. */
interface Lease {
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

/** Returns true if a running engine, including this one, is using one of the sessions. */
export async function isAnyHeld(store: Store, sessionIDs: readonly string[]): Promise<boolean> {
  for (const id of sessionIDs) {
    const present = await store.holder(id)
    if (present !== undefined && isProcessRunning(present)) return true
  }
  return false
}

import type { LeaseHolder, Store } from "../store/store.ts"
import { TackleError } from "../util/errors.ts"
import { isProcessRunning } from "../util/process-table.ts"

/** Another engine, in this or another process, works on the session. */
export class SessionHeldError extends TackleError {
  constructor(id: string, holder: LeaseHolder) {
    super(
      `Session ${id} is being worked on by process ${holder.pid}. Wait until that run has ended, or end it; nothing was changed.`,
      { code: "session.held", recoverable: false },
    )
  }
}

/**
 * Makes the engine the only one that writes the session while `work` runs: what another has under way would otherwise
 * look like what a crash left behind. The lease of a process that is gone counts for nothing. Work that fails may leave
 * calls open: `settle` closes them, and where it cannot, the lease is kept, so that the next start does. Throws
 * {@link SessionHeldError} before anything of `work` was done.
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

/** One session's, by the engine that asks for it. */
interface Lease {
  store: Store
  sessionID: string
  holder: LeaseHolder
}

/** Like {@link withLease}, for all of them: none is given to anybody else while `work` runs. */
export function withLeases<T>(
  { store, sessionIDs, holder }: { store: Store; sessionIDs: readonly string[]; holder: LeaseHolder },
  work: () => Promise<T>,
): Promise<T> {
  return sessionIDs.reduceRight(
    (inner, sessionID) => () => withLease({ store, sessionID, holder }, inner),
    work,
  )()
}

/** True while some engine that lives, this one too, works on one of the sessions. */
export async function isAnyHeld(store: Store, sessionIDs: readonly string[]): Promise<boolean> {
  for (const id of sessionIDs) {
    const present = await store.holder(id)
    if (present !== undefined && isProcessRunning(present)) return true
  }
  return false
}

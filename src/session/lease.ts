import type { LeaseHolder, Store } from "../store/store.ts"
import { TackleError } from "../util/errors.ts"
import { isProcessRunning } from "../util/process-identity.ts"

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
 * look like what a crash left behind. The lease of a process that is gone counts for nothing. Throws
 * {@link SessionHeldError} before anything of `work` was done.
 */
export async function withLease<T>(
  { store, sessionID, holder }: { store: Store; sessionID: string; holder: LeaseHolder },
  work: () => Promise<T>,
): Promise<T> {
  const present = await store.lease(sessionID, holder, isProcessRunning)
  if (present.id !== holder.id) throw new SessionHeldError(sessionID, present)
  try {
    return await work()
  } finally {
    await store.release(sessionID, holder)
  }
}

/** True while some engine that lives, this one too, works on the session. */
export async function isHeld(store: Store, sessionID: string): Promise<boolean> {
  const present = await store.holder(sessionID)
  return present !== undefined && isProcessRunning(present)
}

/** Throws {@link SessionHeldError} while another engine works on the session. */
export async function assertNotHeld(store: Store, sessionID: string, holder: LeaseHolder): Promise<void> {
  const present = await store.holder(sessionID)
  if (present && present.id !== holder.id && isProcessRunning(present)) {
    throw new SessionHeldError(sessionID, present)
  }
}

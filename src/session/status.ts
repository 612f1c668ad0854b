import type { Store } from "../store/store.ts"
import type { SessionStatus } from "./handle.ts"
import { isBelow } from "./lineage.ts"

/** An engine's own information about a session, which needs no read of the store. */
export interface LocalActivity {
  /** True while the engine runs the session or delivers its inputs. */
  isActive?: boolean
  /** The sessions whose requests in this engine wait for the user. */
  asking: readonly string[]
}

/** Returns the status of a stored session across all processes. */
export async function sessionStatus(
  store: Store,
  id: string,
  { isActive = false, asking }: LocalActivity = { asking: [] },
): Promise<SessionStatus> {
  const isWaiting = async (sessionIDs: readonly string[]) => {
    for (const each of new Set(sessionIDs)) if (await isBelow(store, each, id)) return true
    return false
  }
  if (await isWaiting(asking)) return "waiting"
  if (!isActive && (await store.holder(id)) === undefined) return "idle"
  return (await isWaiting((await store.requests()).map(({ asked }) => asked.sessionID)))
    ? "waiting"
    : "running"
}

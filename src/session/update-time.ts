import type { Session } from "../schema/session.ts"
import { currentTime } from "../util/clock.ts"

/**
 * Returns the times of a session that changes now. The update time is always later than the previous one, even if the
 * clock was set back, because it orders sessions and reveals changes by other engines.
 */
export function updateTime({ time }: Session): Session["time"] {
  return { ...time, updated: Math.max(currentTime(), time.updated + 1) }
}

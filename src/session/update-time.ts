import type { Session } from "../schema/session.ts"
import { currentTime } from "../util/time.ts"

/**
 * Returns the `time` field for a session that is being changed. Each update time is later than the previous one, even
 * if the clock was set back. Update times order the sessions and reveal changes by other engines.
 */
export function updateTime({ time }: Session): Session["time"] {
  return { ...time, updated: Math.max(currentTime(), time.updated + 1) }
}

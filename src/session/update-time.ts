import type { Session } from "../schema/session.ts"
import { currentTime } from "../util/time.ts"

/**
 * Returns the `time` field for a session that is being changed. The new update time is always later than the previous
 * update time, even if the clock was set back, because update times order sessions and reveal changes by other engines.
 */
export function updateTime({ time }: Session): Session["time"] {
  return { ...time, updated: Math.max(currentTime(), time.updated + 1) }
}

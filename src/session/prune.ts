import type { Session } from "../schema/session.ts"
import { UsageError } from "../util/errors.ts"

/** Which sessions go. At least one of the two; what both name goes. */
export interface PruneChoice {
  /** Those that were last used so long ago, in milliseconds. */
  olderThanMs?: number
  /** All but so many of each project, the newest. */
  keep?: number
}

/**
 * Of sessions without a parent those that go, the oldest first. A session that is kept keeps its subagents'. Throws
 * `UsageError` where nothing says which.
 */
export function chooseOld(
  sessions: readonly Session[],
  { olderThanMs, keep = 0 }: PruneChoice,
  now = Date.now(),
): Session[] {
  if (olderThanMs === undefined && keep === 0)
    throw new UsageError("Say which sessions are to go: --older-than 30d, --keep 20, or both.")
  const projects = Map.groupBy(sessions, ({ worktree }) => worktree)
  return [...projects.values()]
    .flatMap((own) => own.toSorted((a, b) => b.time.updated - a.time.updated).slice(keep))
    .filter(({ time }) => olderThanMs === undefined || now - time.updated >= olderThanMs)
    .sort((a, b) => a.time.updated - b.time.updated)
}

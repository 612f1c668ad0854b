import type { Session } from "../schema/session.ts"
import { UsageError } from "../util/errors.ts"

/** Selects sessions to delete. At least one field is required. If both are set, a session must match both. */
export interface PruneChoice {
  /** Minimum time since the last use, in milliseconds. */
  olderThanMs?: number
  /** Number of newest sessions to keep per project. */
  keep?: number
}

/**
 * Returns the sessions to delete from a list of root sessions, oldest first. Sessions of subagents stay with their
 * parent. Throws `UsageError` if neither field is set.
 */
export function chooseOld(
  sessions: readonly Session[],
  { olderThanMs, keep = 0 }: PruneChoice,
  now = Date.now(),
): Session[] {
  if (olderThanMs === undefined && keep === 0)
    throw new UsageError("Select the sessions to delete: --older-than 30d, --keep 20, or both.")
  const projects = Map.groupBy(sessions, ({ worktree }) => worktree)
  return [...projects.values()]
    .flatMap((own) => own.toSorted((a, b) => b.time.updated - a.time.updated).slice(keep))
    .filter(({ time }) => olderThanMs === undefined || now - time.updated >= olderThanMs)
    .sort((a, b) => a.time.updated - b.time.updated)
}

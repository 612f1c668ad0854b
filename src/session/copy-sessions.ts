import type { Session } from "../schema/session.ts"
import { allSessions } from "../store/session-pages.ts"
import type { Change, LeaseHolder, SequencedChange, Store } from "../store/store.ts"
import { errorMessage, TackleError } from "../util/errors.ts"
import { counted } from "../util/words.ts"
import { SessionHeldError, withLease } from "./lease.ts"

/** A session and the result of copying it. */
export interface CopiedSession {
  session: Session
  /**
   * - `copied`: stored and compared with the source.
   * - `unchanged`: the target already had the same session.
   * - `newer`: the target has a newer version, which was kept.
   * - `held`: a running engine uses the session in the source or the target.
   * - `failed`: the session cannot be read or written, or differs after copying.
   */
  outcome: "copied" | "unchanged" | "newer" | "held" | "failed"
  /** Reason why the outcome is `failed`. */
  problem?: string
}

/** Maximum number of changes in one transaction. */
const batchSize = 200

/**
 * Copies all sessions with their inputs and grants, and the grants of their projects, to another store. Compares each
 * session after copying, and yields the outcome. Can be repeated: skips sessions that are already equal, and completes
 * sessions that an interrupted copy left incomplete. Sequence numbers start again at 1. Does not copy files in the data
 * directory.
 */
export async function* copySessions(
  { from, to }: { from: Store; to: Store },
  holder: LeaseHolder,
): AsyncGenerator<CopiedSession> {
  const sessions = await allSessions(from)
  for (const worktree of new Set(sessions.map((session) => session.worktree)))
    await copyGrants({ from, to }, { worktree })
  for (const session of sessions.toReversed()) {
    try {
      const outcome = await copySession({ from, to }, session, holder)
      yield { session, outcome }
    } catch (error) {
      if (error instanceof SessionHeldError) yield { session, outcome: "held" }
      else yield { session, outcome: "failed", problem: errorMessage(error) }
    }
  }
}

async function copySession(
  { from, to }: { from: Store; to: Store },
  session: Session,
  holder: LeaseHolder,
): Promise<CopiedSession["outcome"]> {
  const { id: sessionID } = session
  return withLease({ store: from, sessionID, holder }, async () => {
    const source = objectsOf(await from.changes(sessionID, 0))
    const present = await to.session(sessionID)
    if (present && (await missing(source, to, sessionID)).length === 0) return "unchanged"
    if (present && present.time.updated > session.time.updated) return "newer"
    // A lease refers to a stored session, so the session is written first. Its other objects are then written under
    // the lease.
    if (!present) await to.commit([{ kind: "session", session }])
    await withLease({ store: to, sessionID, holder }, async (lease) => {
      const changes = await missing(source, to, sessionID)
      for (let index = 0; index < changes.length; index += batchSize)
        await to.commit(changes.slice(index, index + batchSize), { lease })
    })
    await copyGrants({ from, to }, { sessionID })
    const different = await missing(source, to, sessionID)
    if (different.length > 0)
      throw new TackleError(
        `Session ${sessionID} differs in ${counted(different.length, "object")} after copying. Run the import again.`,
        { code: "database.import", recoverable: false },
      )
    return "copied"
  })
}

async function copyGrants(
  { from, to }: { from: Store; to: Store },
  scope: { worktree?: string; sessionID?: string },
): Promise<void> {
  const grants = await from.grants(scope)
  await to.commit(grants.map((grant) => ({ kind: "grant", grant })))
}

/** Stored objects keyed by kind and id. The order of the map is a valid order for writing the objects. */
type Objects = ReadonlyMap<string, SequencedChange["change"]>

const order = ["session", "message", "part", "todos", "input", "part.remove"]

function objectsOf(changes: readonly SequencedChange[]): Objects {
  const objects = new Map<string, SequencedChange["change"]>()
  const byKind = changes.toSorted((a, b) => order.indexOf(a.change.kind) - order.indexOf(b.change.kind))
  for (const { change } of byKind) {
    // Removals only tell clients of the source which parts no longer exist.
    if (change.kind !== "part.remove") objects.set(keyOf(change), change)
  }
  return objects
}

function keyOf(change: SequencedChange["change"]): string {
  switch (change.kind) {
    case "session":
    case "todos":
      return change.kind
    case "message":
      return `message ${change.message.id}`
    case "part":
      return `part ${change.part.messageID} ${change.part.id}`
    case "input":
      return `input ${change.input.id}`
    case "part.remove":
      return `part ${change.messageID} ${change.partID}`
  }
}

/** Returns the changes that make a session in the target equal to the source. */
async function missing(source: Objects, to: Store, sessionID: string): Promise<Change[]> {
  const target = objectsOf(await to.changes(sessionID, 0))
  const changes: Change[] = [...source]
    .filter(([key, change]) => JSON.stringify(change) !== JSON.stringify(target.get(key)))
    .map(([, change]) => change)
  for (const [key, change] of target)
    if (change.kind === "part" && !source.has(key)) {
      const { messageID, id: partID } = change.part
      changes.push({ kind: "part.remove", sessionID, messageID, partID })
    }
  return changes
}

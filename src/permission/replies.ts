import type { EventInput } from "../event/events.ts"
import {
  type Grant,
  PermissionReply,
  type PermissionRequest,
  type ReplySource,
} from "../schema/permission.ts"
import { UsageError } from "../util/errors.ts"
import { grantsOf } from "./grants.ts"
import type { Answer, PendingTable } from "./pending.ts"

/** What became of an answer: taken, too late, or not about anything that waits here. */
export type ReplyOutcome = "applied" | "already" | "unknown"

/** Where answers are told of and kept. */
export interface ReplyDependencies {
  publish(event: EventInput): void
  /** Keeps grants. When it resolves, every policy read from then on has them. */
  saveGrants(grants: Grant[]): Promise<void>
  /** Takes grants back that were kept for a request which ended meanwhile. */
  dropGrants(ids: string[]): Promise<void>
}

/** How requests that wait are answered. */
export interface Replies {
  /** See `Permission.reply`. */
  reply(requestID: string, reply: PermissionReply, source: ReplySource): Promise<ReplyOutcome>
  /** Refuses a request whose call has ended, unless it was answered. */
  abandon(request: PermissionRequest): void
}

/** For the requests of a table. */
export function createReplies(
  table: PendingTable,
  { publish, saveGrants, dropGrants }: ReplyDependencies,
): Replies {
  /** Requests whose grants are being kept: their answer is given. */
  const saving = new Set<string>()

  async function reply(
    requestID: string,
    given: PermissionReply,
    source: ReplySource,
  ): Promise<ReplyOutcome> {
    const entry = table.get(requestID)
    if (!entry) return table.wasAnswered(requestID) ? "already" : "unknown"
    if (saving.has(requestID)) return "already"
    const parsed = PermissionReply.safeParse(given)
    // Whatever is not understood must not count as a yes.
    if (!parsed.success)
      throw new UsageError('A reply is "once", "always" or "reject". This one is none of them.')
    const answer: Answer = { reply: parsed.data, source }
    if (parsed.data.reply !== "always") return settle(requestID, answer)

    const grants = grantsOf(parsed.data, entry.request, entry.worktree)
    saving.add(requestID)
    try {
      await saveGrants(grants)
    } finally {
      saving.delete(requestID)
    }
    const outcome = settle(requestID, answer)
    if (outcome !== "applied") {
      // The call ended while the grants were being kept: then nobody was answered, and nothing is granted.
      await dropGrants(grants.map(({ id }) => id))
      return outcome
    }
    // Also of other sessions: a grant may hold for subagents side by side, or for all of the project.
    for (const other of table.ofSession()) {
      if (await other.isAllowed()) settle(other.request.id, { reply: { reply: "once" }, source: "grant" })
    }
    return outcome
  }

  function settle(requestID: string, answer: Answer): ReplyOutcome {
    const entry = table.get(requestID)
    if (!entry || !table.take(requestID)) return "already"
    announce(entry.request, answer)
    entry.settle(answer)
    return "applied"
  }

  function announce(request: PermissionRequest, { reply: given, source }: Answer): void {
    const message = given.reply === "reject" && given.message !== undefined ? { message: given.message } : {}
    const { id: requestID, sessionID } = request
    publish({ type: "permission.replied", sessionID, requestID, reply: given.reply, source, ...message })
  }

  return {
    reply,
    abandon(request) {
      if (table.take(request.id)) announce(request, { reply: { reply: "reject" }, source: "abort" })
    },
  }
}

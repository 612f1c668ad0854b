import type { EventInput } from "../event/events.ts"
import {
  type Grant,
  type PermissionPart,
  PermissionReply,
  type PermissionRequest,
  type ReplySource,
} from "../schema/permission.ts"
import { currentTime } from "../util/clock.ts"
import { UsageError } from "../util/errors.ts"
import { newId } from "../util/id.ts"
import { wildcardCovers } from "../util/wildcard.ts"

/** The reply that ended a request, and its source. */
export interface Answer {
  reply: PermissionReply
  source: ReplySource
}

/** The outcome of a reply. `already` means that the request has already been answered. */
export type ReplyOutcome = "applied" | "already" | "unknown"

/** Functions that publish requests and replies, and store grants. */
export interface ReplyDependencies {
  publish(event: EventInput): void
  /** Stores grants. They apply to every policy that is read after the promise resolves. */
  saveGrants(grants: Grant[]): Promise<void>
  /** Removes the grants of a request that ended while they were being stored. */
  dropGrants(ids: string[]): Promise<void>
}

/** The permission requests that are waiting for a reply. */
export interface PendingRequests {
  /**
   * Announces a request and resolves with its first answer. `isAllowed` returns true if the rules now allow the
   * request.
   */
  add(request: PermissionRequest, worktree: string, isAllowed: () => Promise<boolean>): Promise<Answer>
  /** Answers a request. See `Permission.reply`. */
  reply(requestID: string, reply: PermissionReply, source: ReplySource): Promise<ReplyOutcome>
  /** Rejects a request whose call has ended. Has no effect if the request was already answered. */
  abandon(requestID: string): void
  list(sessionID?: string): PermissionRequest[]
}

/** Maximum number of answered requests to remember, to distinguish a late reply from a reply to an unknown request. */
const maxRemembered = 1_000

interface Entry {
  request: PermissionRequest
  worktree: string
  isAllowed(): Promise<boolean>
  resolve(answer: Answer): void
}

/** Creates the table of pending requests for all sessions. */
export function createPendingRequests({
  publish,
  saveGrants,
  dropGrants,
}: ReplyDependencies): PendingRequests {
  const waiting = new Map<string, Entry>()
  const answered = new Set<string>()
  /** Answered requests whose grants are still being stored. */
  const saving = new Set<string>()

  async function reply(
    requestID: string,
    given: PermissionReply,
    source: ReplySource,
  ): Promise<ReplyOutcome> {
    const entry = waiting.get(requestID)
    if (!entry) return answered.has(requestID) ? "already" : "unknown"
    if (saving.has(requestID)) return "already"
    const parsed = PermissionReply.safeParse(given)
    // An invalid reply must not count as consent.
    if (!parsed.success) throw new UsageError('Invalid reply: expected "once", "always" or "reject".')
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
      // The call ended while the grants were being stored, so nothing is granted.
      await dropGrants(grants.map(({ id }) => id))
      return outcome
    }
    // Checks the requests of every session, because a grant can apply to parallel subagents or to the whole project.
    for (const [id, other] of [...waiting]) {
      if (await other.isAllowed()) settle(id, { reply: { reply: "once" }, source: "grant" })
    }
    return outcome
  }

  function settle(requestID: string, answer: Answer): ReplyOutcome {
    const entry = waiting.get(requestID)
    if (!entry) return "already"
    waiting.delete(requestID)
    answered.add(requestID)
    for (const oldest of answered) {
      if (answered.size <= maxRemembered) break
      answered.delete(oldest)
    }
    const { reply: given, source } = answer
    const message = given.reply === "reject" ? given.message : undefined
    const { sessionID } = entry.request
    publish({ type: "permission.replied", sessionID, requestID, reply: given.reply, source, message })
    entry.resolve(answer)
    return "applied"
  }

  return {
    add(request, worktree, isAllowed) {
      const { promise, resolve } = Promise.withResolvers<Answer>()
      waiting.set(request.id, { request, worktree, isAllowed, resolve })
      publish({ type: "permission.asked", sessionID: request.sessionID, request })
      return promise
    },
    reply,
    abandon(requestID) {
      settle(requestID, { reply: { reply: "reject" }, source: "abort" })
    },
    list(sessionID) {
      const requests = [...waiting.values()].map(({ request }) => request)
      return requests.filter((request) => sessionID === undefined || request.sessionID === sessionID)
    },
  }
}

/** Returns the parts of a request, one for each permission that it asks for. */
export function partsOf({
  permission,
  patterns,
  always,
  also = [],
}: Pick<PermissionRequest, "also"> & PermissionPart): PermissionPart[] {
  return [{ permission, patterns, always }, ...also]
}

/**
 * Returns the grants that an "always" reply creates. Throws `UsageError` if the request does not offer "always" or a
 * pattern is too wide.
 */
function grantsOf(
  { scope, patterns }: Extract<PermissionReply, { reply: "always" }>,
  request: PermissionRequest,
  worktree: string,
): Grant[] {
  const { always, permission, sessionID } = request
  if (always.length === 0)
    throw new UsageError(
      `"always" is not available for this ${permission} request. Reply "once" or "reject".`,
    )
  if (patterns?.length === 0)
    throw new UsageError(
      '"always" requires at least one pattern. Omit `patterns` to accept all offered patterns.',
    )
  const parts = partsOf(request)
  const narrowed = patterns?.map((pattern) => {
    const part = parts.find((each) => each.always.some((offered) => wildcardCovers(offered, pattern)))
    if (part) return { permission: part.permission, pattern }
    const offered = parts.flatMap((each) => each.always).join(", ")
    throw new UsageError(
      `The pattern "${pattern}" allows more than the patterns that this request offers: ${offered}.`,
    )
  })
  const granted =
    narrowed ??
    parts.flatMap((part) => part.always.map((pattern) => ({ permission: part.permission, pattern })))
  const time = { created: currentTime() }
  return granted.map((rule) => ({
    id: newId("gra"),
    scope,
    sessionID: scope === "session" ? sessionID : undefined,
    worktree,
    ...rule,
    action: "allow",
    time,
  }))
}

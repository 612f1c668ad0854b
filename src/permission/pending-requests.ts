import type { EventInput } from "../event/events.ts"
import {
  type Grant,
  type PermissionPart,
  PermissionReply,
  type PermissionRequest,
  type ReplySource,
} from "../schema/permission.ts"
import type { RequestAnswer, WaitingRequest } from "../schema/request.ts"
import { UsageError } from "../util/errors.ts"
import { newId } from "../util/id.ts"
import { currentTime } from "../util/time.ts"
import { wildcardCovers } from "../util/wildcard.ts"

/** The reply that ended a request, and its source. */
export interface Answer {
  reply: PermissionReply
  source: ReplySource
}

/** The outcome of a reply. `already` means that the request has already been answered. */
export type ReplyOutcome = "applied" | "already" | "unknown"

/** Shares an engine's requests with other processes, so that the first answer from any process counts. */
export interface RequestBoard {
  /**
   * Shares a request, unless it is answered in the same turn of the event loop. Calls `deliver` if another process
   * answers the request first.
   */
  share(request: WaitingRequest, deliver: (answer: RequestAnswer) => void): void
  /**
   * Stores the answer to a request. Returns false if the request already has an answer. Rejects if the answer cannot be
   * stored. Returns a promise only if the request is already shared.
   */
  settle(requestID: string, answer: RequestAnswer): boolean | Promise<boolean>
  /** Stops sharing a request that was withdrawn. Stores `answer`, so that other processes stop showing the request. */
  withdraw(requestID: string, answer: RequestAnswer): void
}

/** Functions that publish requests and replies, and store grants. */
export interface ReplyDependencies {
  publish(event: EventInput): void
  /** Stores grants. They apply to every policy that is read after the promise resolves. */
  saveGrants(grants: Grant[]): Promise<void>
  /** Removes the grants of a request that ended while the grants were being stored. */
  dropGrants(ids: string[]): Promise<void>
  /** Shares the requests with other processes. If undefined, requests are not shared. */
  board?: RequestBoard
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
  board,
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
    const reply = parseReply(given)
    if (reply.reply !== "always") return settle(requestID, { reply, source })

    const grants = grantsOf(reply, entry.request, entry.worktree)
    await save(requestID, grants)
    const outcome = await settle(requestID, { reply, source })
    if (outcome === "applied") await answerAllowed()
    // The request ended while the grants were being stored, so nothing is granted.
    else await dropGrants(grants.map(({ id }) => id))
    return outcome
  }

  async function save(requestID: string, grants: Grant[]): Promise<void> {
    saving.add(requestID)
    try {
      await saveGrants(grants)
    } finally {
      saving.delete(requestID)
    }
  }

  /**
   * Answers all pending requests that the rules now allow, including requests in other sessions, such as parallel
   * subagents.
   */
  async function answerAllowed(): Promise<void> {
    for (const [id, other] of [...waiting])
      if (await other.isAllowed()) await settle(id, { reply: { reply: "once" }, source: "grant" })
  }

  /** Applies an answer that another process has stored. */
  async function receive(requestID: string, answer: RequestAnswer): Promise<void> {
    const entry = waiting.get(requestID)
    if (!entry || answer.type !== "permission") return
    const { reply, source } = answer
    if (reply.reply !== "always") {
      apply(requestID, { reply, source })
      return
    }
    const grants = offeredGrants(reply, entry)
    if (!grants) {
      apply(requestID, { reply: { reply: "reject" }, source })
      return
    }
    try {
      await save(requestID, grants)
    } catch {
      // The user allowed this request. Only the permission for later requests could not be stored.
      apply(requestID, { reply: { reply: "once" }, source })
      return
    }
    apply(requestID, { reply, source })
    // After an error, the other requests still wait for the user.
    await answerAllowed().catch(() => {})
  }

  /** Applies the answer, unless the request already has one. */
  async function settle(requestID: string, answer: Answer): Promise<ReplyOutcome> {
    if (!waiting.has(requestID)) return "already"
    const isFirst = board?.settle(requestID, stored(answer)) ?? true
    return isFirst === true || (await isFirst) ? apply(requestID, answer) : "already"
  }

  function apply(requestID: string, answer: Answer): ReplyOutcome {
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
      board?.share({ type: "permission", ...request }, (answer) => void receive(request.id, answer))
      publish({ type: "permission.asked", sessionID: request.sessionID, request })
      return promise
    },
    reply,
    abandon(requestID) {
      const answer: Answer = { reply: { reply: "reject" }, source: "abort" }
      if (apply(requestID, answer) === "applied") board?.withdraw(requestID, stored(answer))
    },
    list(sessionID) {
      const requests = [...waiting.values()].map(({ request }) => request)
      return requests.filter((request) => sessionID === undefined || request.sessionID === sessionID)
    },
  }
}

function stored(answer: Answer): RequestAnswer {
  return { type: "permission", id: newId("ans"), ...answer }
}

/**
 * Returns the reply. Throws `UsageError` if the reply is invalid, because an invalid reply must not count as consent.
 */
function parseReply(given: PermissionReply): PermissionReply {
  const parsed = PermissionReply.safeParse(given)
  if (!parsed.success)
    throw new UsageError(
      'Invalid reply: expected { reply: "once" }, { reply: "reject", message?: string } or ' +
        '{ reply: "always", scope?: "session" | "project", patterns?: string[] }.',
    )
  return parsed.data
}

/**
 * Returns the reply to a request from another process. Throws `UsageError` if the reply is invalid or allows more than
 * the request offers.
 */
export function checkedReply(given: PermissionReply, request: PermissionRequest): PermissionReply {
  const reply = parseReply(given)
  if (reply.reply === "always") grantsOf(reply, request, "")
  return reply
}

/** Returns the parts of a request: one part for each permission that the request asks for. */
export function partsOf({
  permission,
  patterns,
  always,
  also = [],
}: Pick<PermissionRequest, "also"> & PermissionPart): PermissionPart[] {
  return [{ permission, patterns, always }, ...also]
}

/** Like {@link grantsOf}, but returns undefined if the reply is not allowed. */
function offeredGrants(
  reply: Extract<PermissionReply, { reply: "always" }>,
  { request, worktree }: Entry,
): Grant[] | undefined {
  try {
    return grantsOf(reply, request, worktree)
  } catch {
    return undefined
  }
}

/**
 * Returns the grants that an "always" reply creates. Throws `UsageError` if the request does not offer "always", the
 * list of patterns is empty, or a pattern is too wide.
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
      `The pattern "${pattern}" is not covered by the patterns that this request offers: ${offered}.`,
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

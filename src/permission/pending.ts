import type { PermissionReply, PermissionRequest, ReplySource } from "../schema/permission.ts"

/** How a request ended. */
export interface Answer {
  reply: PermissionReply
  source: ReplySource
}

/** A request that waits, and what is needed to look at it again when the rules change. */
export interface PendingRequest {
  request: PermissionRequest
  worktree: string
  answered: Promise<Answer>
  /** Ends the wait. Only the first answer counts. */
  settle(answer: Answer): void
  /** True if the rules by now allow all that is asked for. */
  isAllowed(): Promise<boolean>
}

/** The requests that wait for an answer, and the ids of the last ones that had theirs. */
export interface PendingTable {
  add(request: PermissionRequest, worktree: string, isAllowed: () => Promise<boolean>): PendingRequest
  get(id: string): PendingRequest | undefined
  /** Takes a request out, once: false where another answer came first. */
  take(id: string): boolean
  wasAnswered(id: string): boolean
  ofSession(sessionID?: string): PendingRequest[]
}

/** So many ids of answered requests are remembered, to tell a late answer from a foreign one. */
const maxRemembered = 1_000

/** One for all sessions. */
export function createPendingTable(): PendingTable {
  const waiting = new Map<string, PendingRequest>()
  const answered = new Set<string>()

  return {
    add(request, worktree, isAllowed) {
      const { promise, resolve } = Promise.withResolvers<Answer>()
      const entry: PendingRequest = { request, worktree, answered: promise, settle: resolve, isAllowed }
      waiting.set(request.id, entry)
      return entry
    },
    get: (id) => waiting.get(id),
    take(id) {
      if (!waiting.delete(id)) return false
      answered.add(id)
      for (const oldest of answered) {
        if (answered.size <= maxRemembered) break
        answered.delete(oldest)
      }
      return true
    },
    wasAnswered: (id) => answered.has(id),
    ofSession: (sessionID) =>
      [...waiting.values()].filter(
        ({ request }) => sessionID === undefined || request.sessionID === sessionID,
      ),
  }
}

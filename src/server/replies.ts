import type { Tackle } from "../engine/tackle.ts"
import type { TackleEvent } from "../event/events.ts"
import type { PermissionReply, PermissionRequest } from "../schema/permission.ts"
import type { QuestionRequest } from "../schema/question.ts"
import type { Engines } from "./engines.ts"
import { notFound, ServerError } from "./errors.ts"
import type { Reply } from "./schemas/request-schemas.ts"

/** A permission request or question that waits for the user. */
export type WaitingRequest =
  | ({ type: "permission" } & PermissionRequest)
  | ({ type: "question" } & QuestionRequest)

/** The requests that wait for the user, in all engines of a server. */
export interface Replies {
  /**
   * Returns the waiting requests, oldest first. With `sessionID`, returns only the requests of this session and its
   * subagents.
   */
  list(sessionID?: string): Promise<WaitingRequest[]>
  /**
   * Answers a request. Throws `ServerError` with status 404 for an unknown request, 409 for a request that has already
   * been answered (the error contains the first reply), and 400 for a reply of the wrong kind.
   */
  reply(requestID: string, reply: Reply): Promise<void>
}

/** Maximum number of answered requests to remember. The error for a late reply contains the first reply. */
const maxRemembered = 1_000

/** Creates the access to the waiting requests of all engines of a server. */
export function createReplies(
  engines: Engines,
  parentOf: (id: string) => Promise<string | undefined>,
): Replies {
  /** First replies by request. */
  const answered = new Map<string, Reply>()
  /** Replies that are being applied. */
  const applying = new Map<string, { reply: Reply; done: Promise<unknown> }>()

  engines.subscribe((event) => {
    const first = replyIn(event)
    if (!first) return
    const [id, reply] = first
    answered.set(id, applying.get(id)?.reply ?? reply)
    for (const oldest of answered.keys()) {
      if (answered.size <= maxRemembered) break
      answered.delete(oldest)
    }
  })

  function assertUnanswered(id: string): void {
    const first = answered.get(id)
    if (!first) return
    throw new ServerError(`The request ${id} has already been answered. The reply was not applied.`, {
      code: "request.answered",
      details: { first },
    })
  }

  async function isBelow(id: string, root: string): Promise<boolean> {
    for (let each: string | undefined = id; each !== undefined; each = await parentOf(each))
      if (each === root) return true
    return false
  }

  return {
    async list(sessionID) {
      const found: WaitingRequest[] = []
      for (const request of engines.all().flatMap(waitingIn))
        if (sessionID === undefined || (await isBelow(request.sessionID, sessionID))) found.push(request)
      return found.sort((a, b) => (a.id.slice(3) < b.id.slice(3) ? -1 : 1))
    },
    async reply(id, reply) {
      assertUnanswered(id)
      // If the engine refuses the first reply, this reply is applied.
      for (let first = applying.get(id); first; first = applying.get(id)) await first.done.catch(() => {})
      assertUnanswered(id)
      const tackle = engines.all().find((each) => waitingIn(each).some((request) => request.id === id))
      if (!tackle) throw notFound("request", id)
      const done = apply(tackle, id, reply)
      applying.set(id, { reply, done })
      try {
        await done
      } finally {
        applying.delete(id)
      }
    },
  }
}

function waitingIn(tackle: Tackle): WaitingRequest[] {
  return [
    ...tackle.pendingRequests().map((request) => ({ type: "permission" as const, ...request })),
    ...tackle.questions.pending().map((request) => ({ type: "question" as const, ...request })),
  ]
}

/** Returns the request that an event ends, and its reply. */
function replyIn(event: TackleEvent): [id: string, reply: Reply] | undefined {
  switch (event.type) {
    case "permission.replied": {
      const { requestID, reply, message } = event
      const named = reply === "always" ? "session" : reply
      return [requestID, message === undefined ? { reply: named } : { reply: named, message }]
    }
    case "question.replied":
      return [event.requestID, { answers: event.answers }]
    case "question.rejected":
      return [event.requestID, { dismissed: true }]
    default:
      return undefined
  }
}

async function apply(tackle: Tackle, id: string, reply: Reply): Promise<void> {
  const isQuestion = tackle.questions.pending().some((request) => request.id === id)
  if (isQuestion === "reply" in reply)
    throw new ServerError(
      isQuestion
        ? `The request ${id} is a question. Send {"answers": [[…]]} or {"dismissed": true}.`
        : `The request ${id} is a permission request. Send {"reply": "once" | "session" | "project" | "reject"}.`,
      { code: "request.invalid" },
    )
  if ("answers" in reply) tackle.questions.reply(id, reply.answers)
  else if ("dismissed" in reply) tackle.questions.reject(id)
  else await tackle.reply(id, permissionReply(reply))
}

function permissionReply({ reply, message, pattern }: Extract<Reply, { reply: string }>): PermissionReply {
  if (reply === "once") return { reply }
  if (reply === "reject") return { reply, message }
  return { reply: "always", scope: reply, patterns: pattern === undefined ? undefined : [pattern].flat() }
}

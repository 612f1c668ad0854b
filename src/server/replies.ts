import type { Tackle } from "../engine/tackle.ts"
import type { TackleEvent } from "../event/events.ts"
import type { PermissionReply } from "../schema/permission.ts"
import type { RequestAnswer, WaitingRequest } from "../schema/request.ts"
import { isBelow } from "../session/lineage.ts"
import type { OtherRequests } from "../session/shared-requests.ts"
import type { Store } from "../store/store.ts"
import type { Engines } from "./engines.ts"
import { notFound, ServerError } from "./errors.ts"
import type { Reply } from "./schemas/request-schemas.ts"

/** The requests that wait for the user, in all of a server's engines and in other processes on its database. */
export interface Replies {
  /**
   * Returns the waiting requests, oldest first. With `sessionID`, returns only the requests from this session and its
   * subagents.
   */
  list(sessionID?: string): Promise<WaitingRequest[]>
  /**
   * Answers a request. Throws `ServerError` with status 404 for an unknown request, 409 for a request that has already
   * been answered (the error contains the first reply), and 400 for a reply of the wrong kind.
   */
  reply(requestID: string, reply: Reply): Promise<void>
}

/** Dependencies of {@link createReplies}. */
export interface RepliesOptions {
  engines: Engines
  store: Store
  otherRequests: Pick<OtherRequests, "list">
}

/**
 * Maximum number of answered requests to remember. A late reply to one of them receives the first reply in its error.
 */
const maxRemembered = 1_000

/** Creates the {@link Replies} for a server. */
export function createReplies({ engines, store, otherRequests }: RepliesOptions): Replies {
  /**
   * First replies, keyed by request. A reply taken from an event lacks the grant's scope and patterns, so it is not
   * exact.
   */
  const answered = new Map<string, { reply: Reply; isExact: boolean }>()
  /** Replies that are being applied, keyed by request. */
  const applying = new Map<string, Promise<unknown>>()

  engines.subscribe((event) => {
    const [id, reply] = replyIn(event) ?? []
    if (id !== undefined && reply && !answered.has(id)) remember(id, { reply, isExact: false })
  })

  function remember(id: string, first: { reply: Reply; isExact: boolean }): void {
    answered.set(id, first)
    for (const oldest of answered.keys()) {
      if (answered.size <= maxRemembered) break
      answered.delete(oldest)
    }
  }

  async function assertUnanswered(id: string): Promise<void> {
    const known = answered.get(id)
    const stored = known?.isExact ? undefined : await store.request(id)
    const isVisible = stored?.answer && (known || (await isServed(stored.asked)))
    const first = isVisible && stored.answer ? replyOf(stored.answer) : known?.reply
    if (!first) return
    throw new ServerError(`The request ${id} has already been answered. This reply was not applied.`, {
      code: "request.answered",
      details: { first },
    })
  }

  /** Returns false for a request from a session that this server does not serve. */
  async function isServed({ sessionID }: WaitingRequest): Promise<boolean> {
    const session = await store.session(sessionID)
    return session !== undefined && engines.isServed(session.directory)
  }

  /** Runs `work` with an engine that can answer the request. */
  async function withEngine<T>(
    id: string,
    work: (tackle: Tackle, asked: WaitingRequest) => Promise<T>,
  ): Promise<T> {
    for (const tackle of engines.all()) {
      const asked = waitingIn(tackle).find((request) => request.id === id)
      if (asked) return work(tackle, asked)
    }
    const stored = await store.request(id)
    if (!stored || !(await isServed(stored.asked))) throw notFound("request", id)
    // Every engine can store the answer, even if the session's directory is on another machine.
    const { asked } = stored
    return engines.use(engines.defaultDirectory, (tackle) => work(tackle, asked))
  }

  async function answer(id: string, reply: Reply): Promise<void> {
    const outcome = await withEngine(id, (tackle, asked) => apply(tackle, asked, reply))
    if (outcome === "applied") return remember(id, { reply, isExact: true })
    await assertUnanswered(id)
    throw notFound("request", id)
  }

  return {
    async list(sessionID) {
      const found = engines.all().flatMap(waitingIn)
      for (const request of await otherRequests.list()) if (await isServed(request)) found.push(request)
      const shown: WaitingRequest[] = []
      for (const request of found)
        if (sessionID === undefined || (await isBelow(store, request.sessionID, sessionID)))
          shown.push(request)
      return shown.sort((a, b) => (a.id.slice(3) < b.id.slice(3) ? -1 : 1))
    },
    async reply(id, reply) {
      await assertUnanswered(id)
      // If the engine rejects the first reply, this reply is applied.
      for (let first = applying.get(id); first; first = applying.get(id)) await first.catch(() => {})
      if (answered.has(id)) await assertUnanswered(id)
      const done = answer(id, reply)
      applying.set(id, done)
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

/** Returns the id of the request that an event answers and the reply, or undefined for other events. */
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

/** Returns a stored answer in the API's format. */
function replyOf(answer: RequestAnswer): Reply {
  if (answer.type === "question") return answer.answers ? { answers: answer.answers } : { dismissed: true }
  const { reply } = answer
  if (reply.reply !== "always") return reply
  return reply.patterns ? { reply: reply.scope, pattern: reply.patterns } : { reply: reply.scope }
}

async function apply(
  tackle: Tackle,
  { id, type }: WaitingRequest,
  reply: Reply,
): Promise<"applied" | "already" | "unknown"> {
  const isQuestion = type === "question"
  if (isQuestion === "reply" in reply)
    throw new ServerError(
      isQuestion
        ? `The request ${id} is a question. Send {"answers": [[…]]} or {"dismissed": true}.`
        : `The request ${id} is a permission request. Send {"reply": "once" | "session" | "project" | "reject"}.`,
      { code: "request.invalid" },
    )
  if ("answers" in reply) return tackle.questions.reply(id, reply.answers)
  if ("dismissed" in reply) return tackle.questions.reject(id)
  return tackle.reply(id, permissionReply(reply))
}

function permissionReply({ reply, message, pattern }: Extract<Reply, { reply: string }>): PermissionReply {
  if (reply === "once") return { reply }
  if (reply === "reject") return { reply, message }
  return { reply: "always", scope: reply, patterns: pattern === undefined ? undefined : [pattern].flat() }
}

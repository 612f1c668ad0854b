import { checkAnswers, type QuestionOutcome, type Questions } from "../call/questions.ts"
import type { Bus } from "../event/bus.ts"
import type { EventOf, EventType } from "../event/events.ts"
import { checkedReply, type ReplyOutcome } from "../permission/pending-requests.ts"
import type { Permission } from "../permission/permission.ts"
import type { PermissionReply, PermissionRequest } from "../schema/permission.ts"
import type { QuestionAnswers, QuestionRequest } from "../schema/question.ts"
import type { RequestAnswer, StoredRequest, WaitingRequest } from "../schema/request.ts"
import { isBelow } from "../session/lineage.ts"
import type { SessionEngine } from "../session/session-engine.ts"
import { UsageError } from "../util/errors.ts"
import { newId } from "../util/id.ts"
import type { AskedQuestion, AskedRequest, Tackle } from "./tackle.ts"

/** Creates the public functions that list and answer the requests of all processes that use the store. */
export function createRequests({
  store,
  permission,
  questions,
  otherRequests,
}: SessionEngine): Pick<Tackle, "requests" | "reply" | "questions"> {
  /**
   * Answers a request from another process. `answerOf` checks the answer, and throws `UsageError` if the answer is
   * invalid.
   */
  async function answer(
    requestID: string,
    answerOf: (asked: WaitingRequest) => RequestAnswer | undefined,
  ): Promise<ReplyOutcome> {
    const request = await store.request(requestID)
    const given = request && answerOf(request.asked)
    if (!given) return "unknown"
    const outcomeOf = (stored: StoredRequest | undefined) =>
      stored === undefined ? "unknown" : stored.answer?.id === given.id ? "applied" : "already"
    return outcomeOf(request.answer ? request : await store.answerRequest(requestID, given))
  }

  async function answerQuestion(
    requestID: string,
    answers: QuestionAnswers | undefined,
  ): Promise<QuestionOutcome> {
    const outcome = await answer(requestID, (asked) => {
      if (asked.type !== "question") return undefined
      // The questions of an answered request are not stored.
      if (answers && asked.questions.length > 0) checkAnswers(asked.questions, answers)
      return { type: "question", id: newId("ans"), answers }
    })
    return outcome === "applied" ? outcome : "unknown"
  }

  /**
   * Returns the outcome in this engine. If this engine does not know the question, answers the question in the other
   * process and returns that outcome.
   */
  function orElsewhere(
    outcome: QuestionOutcome | Promise<QuestionOutcome>,
    requestID: string,
    answers: QuestionAnswers | undefined,
  ): QuestionOutcome | Promise<QuestionOutcome> {
    if (outcome === "applied") return outcome
    if (outcome === "unknown") return answerQuestion(requestID, answers)
    return outcome.then((known) => (known === "unknown" ? answerQuestion(requestID, answers) : known))
  }

  return {
    async requests(sessionID) {
      const own: WaitingRequest[] = [
        ...permission.pending().map((request) => ({ type: "permission" as const, ...request })),
        ...questions.pending().map((request) => ({ type: "question" as const, ...request })),
      ]
      const found: WaitingRequest[] = []
      for (const request of [...own, ...(await otherRequests.list())])
        if (sessionID === undefined || (await isBelow(store, request.sessionID, sessionID)))
          found.push(request)
      return found.sort((a, b) => (a.id.slice(3) < b.id.slice(3) ? -1 : 1))
    },
    async reply(requestID, reply, source = "user") {
      const outcome = await permission.reply(requestID, reply, source)
      if (outcome !== "unknown") return outcome
      return answer(requestID, (asked) => {
        if (asked.type !== "permission") return undefined
        return { type: "permission", id: newId("ans"), reply: checkedReply(reply, asked), source }
      })
    },
    questions: {
      reply: (requestID, answers) => orElsewhere(questions.reply(requestID, answers), requestID, answers),
      reject: (requestID) => orElsewhere(questions.reject(requestID), requestID, undefined),
      pending: questions.pending,
    },
  }
}

/**
 * Creates the function that registers listeners. Listeners receive each permission request and question with functions
 * that answer it.
 */
export function createListeners(
  bus: Bus,
  permission: Pick<Permission, "reply">,
  questions: Pick<Questions, "reply" | "reject">,
) {
  /** Number of listeners for requests and for questions. */
  const answerers = { "permission.asked": 0, "question.asked": 0 }

  function on(type: "permission.asked", listener: (request: AskedRequest) => void): () => void
  function on(type: "question.asked", listener: (request: AskedQuestion) => void): () => void
  function on<T extends EventType>(type: T, listener: (event: EventOf<T>) => void): () => void
  function on(type: EventType, listener: (event: never) => void): () => void {
    const call = listener as (event: unknown) => void
    if (type === "permission.asked")
      return counted(
        type,
        bus.on(type, ({ request }) => call(answerable(request))),
      )
    if (type === "question.asked")
      return counted(
        type,
        bus.on(type, ({ request }) => call(answerableQuestion(request))),
      )
    return bus.on(type, call)
  }

  function counted(type: keyof typeof answerers, unsubscribe: () => void): () => void {
    answerers[type] += 1
    let ended = false
    return () => {
      unsubscribe()
      if (!ended) answerers[type] -= 1
      ended = true
    }
  }

  function answerable(request: PermissionRequest): AskedRequest {
    const reply: AskedRequest["reply"] = (answer) =>
      permission.reply(request.id, typeof answer === "string" ? replyOf(answer) : answer, "user")
    return { ...request, reply }
  }

  function answerableQuestion(request: QuestionRequest): AskedQuestion {
    return {
      ...request,
      reply: (answers) => questions.reply(request.id, answers),
      reject: () => questions.reject(request.id),
    }
  }

  return {
    on: on as Tackle["on"],
    /** Returns true while at least one listener for permission requests is registered. */
    hearsRequests: () => answerers["permission.asked"] > 0,
    /** Returns true while at least one listener for questions is registered. */
    hearsQuestions: () => answerers["question.asked"] > 0,
  }
}

function replyOf(reply: PermissionReply["reply"]): PermissionReply {
  return reply === "always" ? { reply, scope: "session" } : { reply }
}

/**
 * Refuses each permission request that no code in the host answers, because such a request would wait forever. The
 * first refusal is reported as a problem that says what to do.
 */
export function refuseUnheard(
  bus: Bus,
  {
    answered,
    reply,
    onProblem,
  }: Pick<Permission, "reply"> & {
    answered(): boolean
    onProblem(message: string, error: unknown): void
  },
): void {
  let warned = false
  bus.on("permission.asked", ({ request: { id, permission, patterns } }) => {
    if (answered()) return
    if (!warned) onProblem("a permission request was refused", new NobodyAnswersError(permission, patterns))
    warned = true
    void reply(id, { reply: "reject" }, "no-terminal")
  })
}

/** Reports that a permission request was refused because no code in the host answers requests. */
class NobodyAnswersError extends UsageError {
  constructor(permission: string, patterns: readonly string[]) {
    const [pattern = "*"] = patterns
    const rule = `permission: { ${JSON.stringify(permission)}: { ${JSON.stringify(pattern)}: "allow" } }`
    super(
      `${permission} ${JSON.stringify(pattern)} requires approval, but no code answers permission requests. ` +
        'Answer requests with tackle.on("permission.asked", (request) => request.reply("once")), ' +
        `or allow the call with createTackle({ ${rule} }). ` +
        "If your program replies with tackle.reply, set approvals: true.",
    )
  }
}

import { checkAnswers, type QuestionOutcome, type Questions } from "../call/questions.ts"
import { checkedReply, type ReplyOutcome } from "../permission/pending-requests.ts"
import type { Permission } from "../permission/permission.ts"
import type { PermissionReply, ReplySource } from "../schema/permission.ts"
import type { QuestionAnswers } from "../schema/question.ts"
import type { RequestAnswer, StoredRequest, WaitingRequest } from "../schema/request.ts"
import { isBelow } from "../session/lineage.ts"
import type { OtherRequests } from "../session/other-requests.ts"
import type { Store } from "../store/store.ts"
import { newId } from "../util/id.ts"

/** The requests of this engine and of other processes on the same store. */
export interface Requests {
  /** See `Tackle.requests`. */
  list(sessionID?: string): Promise<WaitingRequest[]>
  /** See `Tackle.reply`. */
  reply(requestID: string, reply: PermissionReply, source: ReplySource): Promise<ReplyOutcome>
  /** See `Tackle.questions`. */
  questions: Pick<Questions, "reply" | "reject" | "pending">
}

/** Dependencies of {@link createRequests}. */
export interface RequestsOptions {
  store: Store
  /** The requests of this engine. */
  permission: Pick<Permission, "pending" | "reply">
  questions: Questions
  others: OtherRequests
}

/** Creates the functions that list and answer requests of every process. */
export function createRequests({ store, permission, questions, others }: RequestsOptions): Requests {
  /** Answers a request of another process. `answerOf` checks the answer, and throws `UsageError` if it is invalid. */
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
   * Returns the outcome. If this engine does not know the question, answers the question of another process.
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
    async list(sessionID) {
      const own: WaitingRequest[] = [
        ...permission.pending().map((request) => ({ type: "permission" as const, ...request })),
        ...questions.pending().map((request) => ({ type: "question" as const, ...request })),
      ]
      const found: WaitingRequest[] = []
      for (const request of [...own, ...(await others.list())])
        if (sessionID === undefined || (await isBelow(store, request.sessionID, sessionID)))
          found.push(request)
      return found.sort((a, b) => (a.id.slice(3) < b.id.slice(3) ? -1 : 1))
    },
    async reply(requestID, reply, source) {
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

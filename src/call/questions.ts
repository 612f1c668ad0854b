import type { EventInput } from "../event/events.ts"
import type { RequestBoard } from "../permission/pending-requests.ts"
import type { CallReference } from "../schema/permission.ts"
import type { Question, QuestionAnswers, QuestionRequest } from "../schema/question.ts"
import type { RequestAnswer } from "../schema/request.ts"
import { orAbort } from "../util/abort.ts"
import { UsageError } from "../util/errors.ts"
import { newId } from "../util/id.ts"
import { counted } from "../util/words.ts"

/** The result of answering or dismissing a question. `unknown` means that no question with this id is waiting. */
export type QuestionOutcome = "applied" | "unknown"

/** The questions that tools ask the user. */
export interface Questions {
  /**
   * Asks the user, and waits for the answers without a time limit. Returns undefined if the user dismisses the
   * question. Throws the signal's reason if the signal aborts.
   */
  ask(
    request: Omit<QuestionRequest, "id"> & { tool: CallReference },
    signal: AbortSignal,
  ): Promise<QuestionAnswers | undefined>
  /**
   * Answers a request with one list of answers per question. An empty list skips a question. Only the first reply
   * counts. Throws `UsageError` if the number of lists is wrong, or if a question that allows only one answer gets
   * several. Returns a promise if another process may have answered the request.
   */
  reply(requestID: string, answers: QuestionAnswers): QuestionOutcome | Promise<QuestionOutcome>
  /** Dismisses a question. The call that asked the question continues without answers. */
  reject(requestID: string): QuestionOutcome | Promise<QuestionOutcome>
  /** Returns the waiting questions of one session, or of all sessions, oldest first. */
  pending(sessionID?: string): QuestionRequest[]
}

/**
 * Creates the questions for one engine. `publish` receives the event of each question and answer. `board` shares the
 * questions with other processes.
 */
export function createQuestions(publish: (event: EventInput) => void, board?: RequestBoard): Questions {
  const waiting = new Map<string, Waiting>()

  function settle(
    requestID: string,
    answers: QuestionAnswers | undefined,
  ): QuestionOutcome | Promise<QuestionOutcome> {
    if (!waiting.has(requestID)) return "unknown"
    const isFirst = board?.settle(requestID, stored(answers)) ?? true
    const outcomeOf = (first: boolean) => (first ? apply(requestID, answers) : "unknown")
    return typeof isFirst === "boolean" ? outcomeOf(isFirst) : isFirst.then(outcomeOf)
  }

  function apply(requestID: string, answers: QuestionAnswers | undefined): QuestionOutcome {
    const entry = waiting.get(requestID)
    if (!entry) return "unknown"
    waiting.delete(requestID)
    const { sessionID } = entry.request
    if (answers) publish({ type: "question.replied", sessionID, requestID, answers })
    else publish({ type: "question.rejected", sessionID, requestID })
    entry.settle(answers)
    return "applied"
  }

  return {
    async ask(asked, signal) {
      const { promise, resolve } = Promise.withResolvers<QuestionAnswers | undefined>()
      const request: QuestionRequest = { id: newId("que"), ...asked }
      waiting.set(request.id, { request, settle: resolve })
      board?.share({ type: "question", ...request }, (answer) => {
        if (answer.type === "question") apply(request.id, answer.answers)
      })
      publish({ type: "question.asked", sessionID: request.sessionID, request })
      try {
        return await orAbort(promise, signal)
      } finally {
        if (apply(request.id, undefined) === "applied") board?.withdraw(request.id, stored(undefined))
      }
    },
    reply(requestID, answers) {
      const entry = waiting.get(requestID)
      if (!entry) return "unknown"
      checkAnswers(entry.request.questions, answers)
      return settle(requestID, answers)
    },
    reject: (requestID) => settle(requestID, undefined),
    pending: (sessionID) =>
      [...waiting.values()]
        .map(({ request }) => request)
        .filter((request) => sessionID === undefined || request.sessionID === sessionID),
  }
}

function stored(answers: QuestionAnswers | undefined): RequestAnswer {
  return { type: "question", id: newId("ans"), answers }
}

interface Waiting {
  request: QuestionRequest
  settle(answers: QuestionAnswers | undefined): void
}

/** Throws `UsageError` if the answers do not match the questions. */
export function checkAnswers(questions: readonly Question[], answers: QuestionAnswers): void {
  if (answers.length !== questions.length)
    throw new UsageError(
      `Expected ${counted(questions.length, "list")} of answers, got ${answers.length}. Pass one list per question. An empty list skips the question.`,
    )
  questions.forEach(({ question, multiple }, index) => {
    if (!multiple && (answers[index]?.length ?? 0) > 1)
      throw new UsageError(
        `The question "${question}" allows only one answer, but ${answers[index]?.length} were given.`,
      )
  })
}

import type { EventInput } from "../event/events.ts"
import type { CallReference } from "../schema/permission.ts"
import type { Question, QuestionAnswers, QuestionRequest } from "../schema/question.ts"
import { orAbort } from "../util/abort.ts"
import { UsageError } from "../util/errors.ts"
import { newId } from "../util/id.ts"

/** The result of answering or dismissing a question. `unknown` means that no question with this id is waiting. */
export type QuestionOutcome = "applied" | "unknown"

/** Manages the questions of tools that wait for the user. */
export interface Questions {
  /**
   * Waits for the user's answers without a time limit. Returns undefined if the user dismisses the question. Throws the
   * signal's reason if the signal aborts.
   */
  ask(
    request: Omit<QuestionRequest, "id"> & { tool: CallReference },
    signal: AbortSignal,
  ): Promise<QuestionAnswers | undefined>
  /**
   * Answers a request with one list of answers per question. An empty list skips a question. Throws `UsageError` if the
   * number of lists is wrong, or if a question that allows only one answer gets several.
   */
  reply(requestID: string, answers: QuestionAnswers): QuestionOutcome
  /** Dismisses the question. The model receives a note about it and continues. */
  reject(requestID: string): QuestionOutcome
  /** Returns the waiting questions of one session, or of all sessions, oldest first. */
  pending(sessionID?: string): QuestionRequest[]
}

/** Creates an empty set of questions for one engine. `publish` receives their events. */
export function createQuestions(publish: (event: EventInput) => void): Questions {
  const waiting = new Map<string, Waiting>()

  function settle(requestID: string, answers: QuestionAnswers | undefined): QuestionOutcome {
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
      publish({ type: "question.asked", sessionID: request.sessionID, request })
      try {
        return await orAbort(promise, signal)
      } finally {
        settle(request.id, undefined)
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

interface Waiting {
  request: QuestionRequest
  settle(answers: QuestionAnswers | undefined): void
}

function checkAnswers(questions: readonly Question[], answers: QuestionAnswers): void {
  if (answers.length !== questions.length)
    throw new UsageError(
      `Expected ${questions.length} lists of answers, got ${answers.length}. Pass one list per question. An empty list skips the question.`,
    )
  questions.forEach(({ question, multiple }, index) => {
    if (!multiple && (answers[index]?.length ?? 0) > 1)
      throw new UsageError(`The question "${question}" takes one answer, not ${answers[index]?.length}.`)
  })
}

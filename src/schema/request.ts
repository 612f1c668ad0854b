import type { PermissionReply, PermissionRequest, ReplySource } from "./permission.ts"
import type { QuestionAnswers, QuestionRequest } from "./question.ts"

/** A permission request or question that waits for the user. */
export type WaitingRequest =
  | ({ type: "permission" } & PermissionRequest)
  | ({ type: "question" } & QuestionRequest)

/**
 * The first answer to a request. A question without answers was dismissed. `id` distinguishes answers with the same
 * content.
 */
export type RequestAnswer =
  | { type: "permission"; id: string; reply: PermissionReply; source: ReplySource }
  | { type: "question"; id: string; answers?: QuestionAnswers }

/** A request in the store. Every process that uses the store can show and answer it. */
export interface StoredRequest {
  /** The request. After the answer, it omits details that only the user needed for the decision. */
  asked: WaitingRequest
  /** Id of the engine that waits for the answer. */
  holder: string
  /** Number of the lease under which the engine runs the session. The request ends with this lease. */
  epoch: number
  answer?: RequestAnswer
  time: { created: number; answered?: number }
}

/**
 * Returns a stored request with its first answer. Omits large details, because clients show only waiting requests.
 */
export function withAnswer(request: StoredRequest, answer: RequestAnswer, answered: number): StoredRequest {
  const { asked, time } = request
  return {
    ...request,
    asked:
      asked.type === "permission"
        ? { ...asked, metadata: {} }
        : { ...asked, questions: [], document: undefined },
    answer,
    time: { ...time, answered },
  }
}

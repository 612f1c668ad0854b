import type { Questions } from "../call/questions.ts"
import type { Bus } from "../event/bus.ts"
import type { EventOf, EventType } from "../event/events.ts"
import type { Permission } from "../permission/permission.ts"
import type { PermissionReply, PermissionRequest } from "../schema/permission.ts"
import type { QuestionRequest } from "../schema/question.ts"
import type { AskedQuestion, AskedRequest, Tackle } from "./tackle.ts"

/** The event listeners of an engine. */
export interface Listeners {
  on: Tackle["on"]
  /** Returns true while at least one listener for questions is registered. */
  hearsQuestions(): boolean
}

/** Creates the listeners. Adds functions that answer to each request and question. */
export function createListeners(
  bus: Bus,
  permission: Pick<Permission, "reply">,
  questions: Pick<Questions, "reply" | "reject">,
): Listeners {
  /** Contains one object per listener for questions. */
  const answerers = new Set<object>()

  function on(type: "permission.asked", listener: (request: AskedRequest) => void): () => void
  function on(type: "question.asked", listener: (request: AskedQuestion) => void): () => void
  function on<T extends EventType>(type: T, listener: (event: EventOf<T>) => void): () => void
  function on(type: EventType, listener: (event: never) => void): () => void {
    const call = listener as (event: unknown) => void
    if (type === "permission.asked") return bus.on(type, ({ request }) => call(answerable(request)))
    if (type !== "question.asked") return bus.on(type, call)
    const answerer = {}
    answerers.add(answerer)
    const unsubscribe = bus.on(type, ({ request }) => call(answerableQuestion(request)))
    return () => {
      unsubscribe()
      answerers.delete(answerer)
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

  return { on, hearsQuestions: () => answerers.size > 0 }
}

function replyOf(reply: PermissionReply["reply"]): PermissionReply {
  return reply === "always" ? { reply, scope: "session" } : { reply }
}

import type { Questions } from "../call/questions.ts"
import type { Bus } from "../event/bus.ts"
import type { EventOf, EventType } from "../event/events.ts"
import type { Permission } from "../permission/permission.ts"
import type { PermissionReply, PermissionRequest } from "../schema/permission.ts"
import type { QuestionRequest } from "../schema/question.ts"
import { UsageError } from "../util/errors.ts"
import type { AskedQuestion, AskedRequest, Tackle } from "./tackle.ts"

/** The event listeners of an engine. */
export interface Listeners {
  on: Tackle["on"]
  /** Returns true while at least one listener for permission requests is registered. */
  hearsRequests(): boolean
  /** Returns true while at least one listener for questions is registered. */
  hearsQuestions(): boolean
}

/** Creates the listeners. Adds reply functions to each request and question. */
export function createListeners(
  bus: Bus,
  permission: Pick<Permission, "reply">,
  questions: Pick<Questions, "reply" | "reject">,
): Listeners {
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
    on,
    hearsRequests: () => answerers["permission.asked"] > 0,
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

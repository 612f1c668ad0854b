import type { TackleApi } from "../../client/api.ts"
import type { Tackle } from "../../engine/tackle.ts"
import { partsOf } from "../../permission/pending-requests.ts"
import type { PermissionReply, PermissionRequest, ReplySource } from "../../schema/permission.ts"
import type { QuestionRequest } from "../../schema/question.ts"
import { AbortedError } from "../../util/abort.ts"
import { errorMessage } from "../../util/errors.ts"
import { warn } from "../process/notice.ts"
import { atTerminal } from "../process/question.ts"

/** Options that determine how the requests and questions of a run are answered. */
export interface AnswerOptions {
  /**
   * Whether `--auto` is set, which allows permission requests once, but rejects repeated calls, protected files and
   * commands outside the sandbox.
   */
  auto: boolean
  /** Whether to ask the user the model's questions. False with `--auto`, or if no user can answer. See `canAskHere`. */
  questions: boolean
  /** Pauses live output for a question. Returns a function that resumes it. */
  pause(): () => void
  /** Closes an open question when it aborts, for example because the run was interrupted. */
  signal: AbortSignal
  /** Called when the user presses Ctrl+C at a question. */
  interrupt(): void
}

/** Requests from an engine, or from a session on a server. */
export interface AskedRequests extends Pick<TackleApi, "pendingRequests" | "questions"> {
  readonly worktree: string
  reply(requestID: string, reply: PermissionReply, source: ReplySource): Promise<unknown>
  onPermission(listener: (request: PermissionRequest) => void): void
  onQuestion(listener: (request: QuestionRequest) => void): void
  /** Calls the listener when a request is answered or withdrawn, in any process. */
  onEnd(listener: (requestID: string) => void): void
}

/** Returns the requests from an engine. */
export function requestsOf(tackle: Tackle): AskedRequests {
  return {
    worktree: tackle.worktree,
    reply: tackle.reply,
    pendingRequests: tackle.pendingRequests,
    questions: tackle.questions,
    onPermission: (listener) => tackle.on("permission.asked", listener),
    onQuestion: (listener) => tackle.on("question.asked", listener),
    onEnd(listener) {
      tackle.on("permission.replied", ({ requestID }) => listener(requestID))
      tackle.on("question.replied", ({ requestID }) => listener(requestID))
      tackle.on("question.rejected", ({ requestID }) => listener(requestID))
    },
  }
}

/**
 * Answers every permission request, and with `questions` every question from the model. With `--auto`, never asks.
 * Otherwise asks in the terminal, one question at a time, or rejects the request if no terminal is available.
 */
export function answerRequests(requests: AskedRequests, options: AnswerOptions): void {
  const terminal = atTerminal()
  let last: Promise<void> = Promise.resolve()
  /** The request on the screen. `ended` aborts when the request no longer waits for an answer. */
  let shown: { id: string; ended: AbortController } | undefined
  requests.onEnd((requestID) => {
    if (requestID === shown?.id) shown.ended.abort()
  })

  async function answer(request: PermissionRequest): Promise<void> {
    if (options.auto) return give(request, autoReply(request), "auto")
    if (!terminal) return give(request, { reply: "reject" }, "no-terminal")
    const { askAtTerminal } = await import("./ask.ts")
    await onScreen(request, async (signal) => {
      // The request may have been withdrawn while another question was on the screen.
      const pending = await requests.pendingRequests()
      if (!pending.some(({ id }) => id === request.id)) return
      const { worktree } = requests
      const waiting = pending.length - 1
      await give(request, await askAtTerminal(request, { worktree, waiting, signal }), "user")
    })
  }

  async function answerQuestion(request: QuestionRequest): Promise<void> {
    const { askQuestions } = await import("./ask.ts")
    await onScreen(request, async (signal) => {
      const pending = await requests.questions.pending(request.sessionID)
      if (!pending.some(({ id }) => id === request.id)) return
      const answers = await askQuestions(request, signal)
      if (answers) await requests.questions.reply(request.id, answers)
      else await requests.questions.reject(request.id)
    })
  }

  async function onScreen(
    { id }: { id: string },
    ask: (signal: AbortSignal) => Promise<void>,
  ): Promise<void> {
    const resume = options.pause()
    const ended = new AbortController()
    shown = { id, ended }
    try {
      await ask(AbortSignal.any([options.signal, ended.signal]))
    } catch (error) {
      if (!(error instanceof AbortedError)) throw error
      if (options.signal.aborted) return
      if (ended.signal.aborted)
        process.stderr.write("The request was answered in another process, or its run ended.\n")
      else options.interrupt()
    } finally {
      shown = undefined
      resume()
    }
  }

  async function give(
    request: PermissionRequest,
    reply: PermissionReply,
    source: ReplySource,
  ): Promise<void> {
    await requests.reply(request.id, reply, source)
  }

  async function rejectQuestion({ id }: QuestionRequest): Promise<void> {
    await requests.questions.reject(id)
  }

  requests.onPermission((request) => {
    const next = options.auto || !terminal ? answer(request) : last.then(() => answer(request))
    last = next.catch((error: unknown) => {
      warn(`cannot answer the permission request, so it is rejected: ${errorMessage(error)}`)
      return give(request, { reply: "reject" }, "no-terminal")
    })
  })
  if (!options.questions) return
  requests.onQuestion((request) => {
    last = last
      .then(() => answerQuestion(request))
      .catch((error: unknown) => {
        warn(`cannot ask the question, so it is rejected: ${errorMessage(error)}`)
        return rejectQuestion(request)
      })
  })
}

/**
 * Returns the reply for `--auto`. Rejects repeated calls, protected files that no rule names, and commands outside the
 * sandbox. Allows other requests once.
 */
function autoReply(request: PermissionRequest): PermissionReply {
  const guarded =
    request.metadata.protected !== undefined ||
    partsOf(request).some(({ permission }) => permission === "doom_loop" || permission === "sandbox_escape")
  return guarded ? { reply: "reject" } : { reply: "once" }
}

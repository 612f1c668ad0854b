import type { AskedQuestion, Tackle } from "../../engine/tackle.ts"
import { partsOf } from "../../permission/pending-requests.ts"
import type { PermissionReply, PermissionRequest, ReplySource } from "../../schema/permission.ts"
import { AbortedError } from "../../util/abort.ts"
import { errorMessage } from "../../util/errors.ts"
import { warn } from "../process/notice.ts"
import { atTerminal } from "../process/question.ts"

/** Options that determine how the requests and questions of a run are answered. */
export interface AnswerOptions {
  /**
   * True with `--auto`, which allows every request once, except for loops, protected files and commands outside the
   * sandbox.
   */
  auto: boolean
  /** Whether the model may ask questions. See `canAskHere`. False under `--auto` or if no user can answer. */
  questions: boolean
  /** Clears the screen for a question. Returns a function that restores the screen. */
  pause(): () => void
  /** Fires when the run ends, which closes an open question. */
  signal: AbortSignal
  /** Called when the user presses Ctrl-C at a question. */
  interrupt(): void
}

/**
 * Answers every request from the engine: according to `--auto`, by asking at the terminal, or by refusing if there is
 * no terminal. Shows one question at a time.
 */
export function answerRequests(tackle: Tackle, options: AnswerOptions): void {
  const terminal = atTerminal()
  let last: Promise<void> = Promise.resolve()

  async function answer(request: PermissionRequest): Promise<void> {
    if (options.auto) return give(request, autoReply(request), "auto")
    if (!terminal) return give(request, { reply: "reject" }, "no-terminal")
    const { askAtTerminal } = await import("./ask.ts")
    await onScreen(async () => {
      // The request was withdrawn while another question was on the screen.
      if (!tackle.pendingRequests(request.sessionID).some(({ id }) => id === request.id)) return
      const { worktree } = tackle
      const waiting = tackle.pendingRequests().length - 1
      await give(request, await askAtTerminal(request, { worktree, waiting, signal: options.signal }), "user")
    })
  }

  async function answerQuestion(request: AskedQuestion): Promise<void> {
    const { askQuestions } = await import("./ask.ts")
    await onScreen(async () => {
      if (!tackle.questions.pending(request.sessionID).some(({ id }) => id === request.id)) return
      const answers = await askQuestions(request, options.signal)
      if (answers) request.reply(answers)
      else request.reject()
    })
  }

  async function onScreen(ask: () => Promise<void>): Promise<void> {
    const resume = options.pause()
    try {
      await ask()
    } catch (error) {
      if (!(error instanceof AbortedError)) throw error
      if (!options.signal.aborted) options.interrupt()
    } finally {
      resume()
    }
  }

  async function give(
    request: PermissionRequest,
    reply: PermissionReply,
    source: ReplySource,
  ): Promise<void> {
    await tackle.reply(request.id, reply, source)
  }

  tackle.on("permission.asked", (request) => {
    const next = options.auto || !terminal ? answer(request) : last.then(() => answer(request))
    last = next.catch((error: unknown) => {
      warn(`cannot show the question: ${errorMessage(error)}`)
      return give(request, { reply: "reject" }, "no-terminal")
    })
  })
  if (!options.questions) return
  tackle.on("question.asked", (request) => {
    last = last
      .then(() => answerQuestion(request))
      .catch((error: unknown) => {
        warn(`cannot show the question: ${errorMessage(error)}`)
        request.reject()
      })
  })
}

/**
 * Returns the reply of `--auto`. Refuses loops, protected files that no rule names, and commands outside the sandbox.
 */
export function autoReply(request: PermissionRequest): PermissionReply {
  const guarded =
    request.metadata.protected !== undefined ||
    partsOf(request).some(({ permission }) => permission === "doom_loop" || permission === "sandbox_escape")
  return guarded ? { reply: "reject" } : { reply: "once" }
}

import type { Tackle } from "../runtime.ts"
import type { PermissionReply, PermissionRequest, ReplySource } from "../schema/permission.ts"
import { AbortedError } from "../util/abort.ts"
import { errorMessage } from "../util/errors.ts"
import { warn } from "./setup.ts"

export interface AnswerOptions {
  /** `--auto`: yes, once, to everything but loops, the way out of the sandbox and protected files. */
  auto: boolean
  /** Clears the screen for a question, and returns the function that gives it back. */
  pause(): () => void
  /** Fires at the end of the run: an open question goes away. */
  signal: AbortSignal
  /** Ctrl-C at a question. */
  interrupt(): void
}

/**
 * Answers every request of the engine: by `--auto`, at the terminal, or with a refusal where there is none. Questions
 * come one after the other.
 */
export function answerRequests(tackle: Tackle, options: AnswerOptions): void {
  const terminal = process.stdin.isTTY === true && process.stderr.isTTY === true
  let last: Promise<void> = Promise.resolve()

  async function answer(request: PermissionRequest): Promise<void> {
    if (options.auto) return give(request, autoReply(request), "auto")
    if (!terminal) return give(request, { reply: "reject" }, "no-terminal")
    const { askAtTerminal } = await import("./ask.ts")
    // Withdrawn while another question was on the screen.
    if (!tackle.pendingRequests(request.sessionID).some(({ id }) => id === request.id)) return
    const resume = options.pause()
    try {
      const { worktree } = tackle
      await give(request, await askAtTerminal(request, { worktree, signal: options.signal }), "person")
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
      warn(`the question could not be asked: ${errorMessage(error)}`)
      return give(request, { reply: "reject" }, "no-terminal")
    })
  })
}

/** What `--auto` never says yes to: a call that goes round in circles, the way out of the sandbox, and files that no rule names. */
export function autoReply(request: PermissionRequest): PermissionReply {
  const guarded =
    request.permission === "doom_loop" ||
    request.permission === "sandbox_escape" ||
    request.metadata.protected !== undefined
  return guarded ? { reply: "reject" } : { reply: "once" }
}

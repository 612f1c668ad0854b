import type { PermissionReply, PermissionRequest, ReplySource } from "../schema/permission.ts"
import { abortedError, orAbort, throwIfAborted } from "../util/abort.ts"
import { checkRequest } from "./check.ts"
import { type Explanation, explainRequest } from "./explain.ts"
import { type Answer, createPendingTable } from "./pending.ts"
import { askPlugins, type Decide, type PluginWord } from "./plugin-word.ts"
import { keyOf, openChecks, questionOf } from "./question.ts"
import { refusal, refuseDenied } from "./refusals.ts"
import { createReplies, type ReplyDependencies, type ReplyOutcome } from "./replies.ts"
import type { Check, PermissionAsk, Scope, SessionAsk, Verdict } from "./request.ts"

/** What the engine needs of whoever opens it. */
export interface PermissionDependencies extends ReplyDependencies {
  /** The home directory, for `~` and `$HOME`. Absolute. */
  home: string
  /** Directories of the person's own config and of the engine's data, of every scope: see `Scope.guarded`. */
  guarded?: readonly string[]
  /** Absent where there is no plugin. */
  decide?: Decide
  /** Takes out of a value what nobody is to see. */
  hide?<T>(value: T): T
}

/** Decides by rule where rules decide, and asks a person where they do not. */
export interface Permission {
  /**
   * Resolves when everything asked for is allowed. All of it is judged before anyone is asked. Throws
   * `PermissionError` when a rule, a person or the lack of one refuses, and the signal's reason when it fires first.
   * `beforeQuestion` is waited for before a person is asked: what the question is about is announced by then.
   */
  ask(
    request: SessionAsk,
    scope: Scope,
    signal: AbortSignal,
    beforeQuestion?: () => Promise<void>,
  ): Promise<void>
  /** The verdict alone. Nobody is asked. */
  check(request: PermissionAsk, scope: Scope): Promise<Verdict>
  /** The verdict with everything it rests on, for people. Nobody is asked. */
  explain(request: PermissionAsk, scope: Scope): Promise<Explanation>
  /**
   * Answers a request, once. `always` is kept before this resolves, and lets go on what else waits and is allowed by it.
   * Throws `UsageError` for what is no reply, and where "always" reaches further than what was offered; the request then
   * goes on waiting.
   */
  reply(requestID: string, reply: PermissionReply, source: ReplySource): Promise<ReplyOutcome>
  /** The requests that wait, oldest first. */
  pending(sessionID?: string): PermissionRequest[]
}

/** One for all sessions: what is granted in one may answer what waits in another. */
export function createPermission({
  home,
  guarded = [],
  publish,
  saveGrants,
  dropGrants,
  decide,
  hide = (value) => value,
}: PermissionDependencies): Permission {
  const table = createPendingTable()
  const { reply, abandon } = createReplies(table, { publish, saveGrants, dropGrants })
  // Plugins are shown of a request what everybody is.
  const plugins: Decide | undefined = decide && ((request, ...more) => decide(hide(request), ...more))
  const withGuarded = (scope: Scope): Scope => ({ ...scope, guarded })

  async function ask(
    request: SessionAsk,
    given: Scope,
    signal: AbortSignal,
    beforeQuestion?: () => Promise<void>,
  ): Promise<void> {
    const scope = withGuarded(given)
    const allowed = new Set<string>()
    let word: PluginWord | undefined
    for (;;) {
      throwIfAborted(signal)
      const verdict = await checkRequest(request, scope, home)
      refuseDenied(verdict)
      // Once for a request, however many questions it takes.
      word ??= plugins ? await askPlugins(plugins, request, verdict, signal) : "none"
      if (word === "answered") return
      const tightened = word === "tightened"
      const open = openChecks(verdict, allowed, tightened)
      const [first] = open
      if (!first) return
      const group = open.filter((check) => check.permission === first.permission)
      await beforeQuestion?.()
      await askPerson({ request, scope, signal, group, tightened })
      for (const check of group) allowed.add(keyOf(check))
    }
  }

  async function askPerson({ request, scope, signal, group, tightened }: PersonalAsk): Promise<void> {
    const question = hiding(questionOf(request, group))
    const stillAsks = new Set(group.map(keyOf))
    const entry = table.add(question, scope.worktree, async () => {
      // What the rules allow by themselves was not the reason to ask.
      if (tightened) return false
      const verdict = await checkRequest(request, scope, home)
      return (
        verdict.action !== "deny" &&
        !openChecks(verdict, new Set()).some((check) => stillAsks.has(keyOf(check)))
      )
    })
    publish({ type: "permission.asked", sessionID: request.sessionID, request: question })
    let answer: Answer
    try {
      answer = await orAbort(entry.answered, signal)
    } catch (error) {
      abandon(question)
      throw error
    }
    // An answer and an abort at the same moment: the work is over either way.
    if (signal.aborted) throw abortedError(signal)
    if (answer.reply.reply === "reject") throw refusal(question, answer)
  }

  /** A rule with a secret in it would not match without it: where there is one, nothing is remembered. */
  function hiding(question: PermissionRequest): PermissionRequest {
    const hidden = hide(question)
    const remembered = hidden.always.every((pattern, index) => pattern === question.always[index])
    return remembered ? hidden : { ...hidden, always: [] }
  }

  return {
    ask,
    reply,
    async check(request, scope) {
      const { details: _, policy: __, ...verdict } = await checkRequest(request, withGuarded(scope), home)
      return verdict
    },
    explain: (request, scope) => explainRequest(request, withGuarded(scope), home),
    pending: (sessionID) => table.ofSession(sessionID).map((entry) => entry.request),
  }
}

interface PersonalAsk {
  request: SessionAsk
  scope: Scope
  signal: AbortSignal
  group: readonly Check[]
  /** The rules allow it; a plugin wants it asked. */
  tightened: boolean
}

import type { Action, PermissionReply, PermissionRequest, ReplySource } from "../schema/permission.ts"
import { abortedError, orAbort, throwIfAborted } from "../util/abort.ts"
import { newId } from "../util/id.ts"
import { checkRequest, type DetailedVerdict } from "./check.ts"
import { PermissionError } from "./errors.ts"
import { type Explanation, explainRequest } from "./explain.ts"
import { invisibleCharacters } from "./invisible.ts"
import {
  type Answer,
  createPendingRequests,
  type ReplyDependencies,
  type ReplyOutcome,
} from "./pending-requests.ts"
import type { Check, PermissionAsk, Scope, SessionAsk, Verdict } from "./request.ts"

/** Asks plugins about a request that the rules allow or ask about. Returns their decision. */
export type Decide = (request: SessionAsk, action: "allow" | "ask", signal: AbortSignal) => Promise<Action>

/** Dependencies of {@link createPermission}. */
export interface PermissionDependencies extends ReplyDependencies {
  /** The home directory, for `~` and `$HOME`. Absolute. */
  home: string
  /** The user's config directories and the data directory of the engine: see `Scope.guarded`. */
  guarded?: readonly string[]
  /** Undefined if there are no plugins. */
  decide?: Decide
  /** Removes secrets from a value. */
  hide?<T>(value: T): T
}

/** Decides by the rules, and asks the user if the rules say so. */
export interface Permission {
  /**
   * Resolves if everything is allowed. Judges the whole request before it asks. Throws `PermissionError` if a rule, a
   * plugin or the user refuses or no user can be asked, and the reason of the signal if it aborts. Awaits
   * `beforeQuestion` before it asks, so that the call is announced first.
   */
  ask(
    request: SessionAsk,
    scope: Scope,
    signal: AbortSignal,
    beforeQuestion?: () => Promise<void>,
  ): Promise<void>
  /** Returns the verdict without asking. */
  check(request: PermissionAsk, scope: Scope): Promise<Verdict>
  /** Returns the verdict and its reasons, for the user, without asking. */
  explain(request: PermissionAsk, scope: Scope): Promise<Explanation>
  /**
   * Answers a request once. Stores an `always` before it resolves, and answers other requests that the new rules allow.
   * Throws `UsageError` for an invalid reply and for an `always` that is wider than offered; the request stays pending.
   */
  reply(requestID: string, reply: PermissionReply, source: ReplySource): Promise<ReplyOutcome>
  /** Lists the pending requests, oldest first. */
  pending(sessionID?: string): PermissionRequest[]
}

/** Creates the permission service for all sessions: a grant of one session can answer a request of another. */
export function createPermission({
  home,
  guarded = [],
  decide,
  hide = (value) => value,
  ...replies
}: PermissionDependencies): Permission {
  const pending = createPendingRequests(replies)
  const withGuarded = (scope: Scope): Scope => ({ ...scope, guarded })

  async function ask(
    request: SessionAsk,
    given: Scope,
    signal: AbortSignal,
    beforeQuestion?: () => Promise<void>,
  ): Promise<void> {
    const scope = withGuarded(given)
    const allowed = new Set<string>()
    let opinion: PluginOpinion | undefined
    for (;;) {
      throwIfAborted(signal)
      const verdict = await checkRequest(request, scope, home)
      throwIfDenied(verdict)
      // Plugins are asked once per request. They do not see secrets.
      opinion ??= decide ? await askPlugins(decide, hide(request), verdict, signal) : "none"
      if (opinion === "allow") return
      const group = nextGroup(verdict, allowed, opinion)
      if (group.length === 0) return
      await beforeQuestion?.()
      await askUser(request, group, { scope, signal, opinion })
      for (const check of group) allowed.add(keyOf(check))
    }
  }

  async function askUser(
    request: SessionAsk,
    group: readonly Check[],
    { scope, signal, opinion }: { scope: Scope; signal: AbortSignal; opinion: PluginOpinion },
  ): Promise<void> {
    const question = withoutSecrets(questionOf(request, group))
    const asked = new Set(group.map(keyOf))
    const answered = pending.add(question, scope.worktree, async () => {
      // A new rule does not change a plugin's decision.
      if (opinion === "ask") return false
      const verdict = await checkRequest(request, scope, home)
      return (
        verdict.action !== "deny" && !openChecks(verdict, new Set()).some((check) => asked.has(keyOf(check)))
      )
    })
    let answer: Answer
    try {
      answer = await orAbort(answered, signal)
    } catch (error) {
      pending.abandon(question.id)
      throw error
    }
    // The answer and the abort can arrive at the same time.
    if (signal.aborted) throw abortedError(signal)
    if (answer.reply.reply === "reject") throw refusal(question, answer)
  }

  /** Hides secrets. A pattern with a secret is not remembered: it would not match without it. */
  function withoutSecrets(question: PermissionRequest): PermissionRequest {
    const hidden = hide(question)
    const remembered = hidden.always.every((pattern, index) => pattern === question.always[index])
    return remembered ? hidden : { ...hidden, always: [] }
  }

  return {
    ask,
    reply: pending.reply,
    async check(request, scope) {
      const { details: _, policy: __, ...verdict } = await checkRequest(request, withGuarded(scope), home)
      return verdict
    },
    explain: (request, scope) => explainRequest(request, withGuarded(scope), home),
    pending: pending.list,
  }
}

/** Throws `PermissionError` if a rule denies a part of the request. */
function throwIfDenied({ details }: DetailedVerdict): void {
  const denied = details.filter(({ judgement }) => judgement.action === "deny")
  const [first] = denied
  if (!first) return
  const { permission } = first.check
  const patterns = denied.flatMap(({ check }) => (check.permission === permission ? [check.pattern] : []))
  throw new PermissionError({ kind: "denied", permission, patterns, by: "rule", rule: first.judgement.rule })
}

/** The decision of plugins. `allow` answers for the user, `ask` asks even if the rules allow, `none` leaves it to the rules. */
type PluginOpinion = "allow" | "ask" | "none"

/** Throws `PermissionError` if a plugin denies the request. */
async function askPlugins(
  decide: Decide,
  request: SessionAsk,
  { action, details }: DetailedVerdict,
  signal: AbortSignal,
): Promise<PluginOpinion> {
  const asks = action === "ask"
  const decision = await decide(request, asks ? "ask" : "allow", signal)
  if (decision === "deny") {
    const { permission, patterns } = request
    throw new PermissionError({ kind: "rejected", permission, patterns, by: "plugin" })
  }
  if (decision === "ask") return asks ? "none" : "ask"
  // Only the user can continue a loop: a plugin would always give the same answer.
  const loops = details.some(({ check }) => check.permission === "doom_loop")
  return asks && !loops ? "allow" : "none"
}

/** Returns the checks of the next question: all open checks of one permission. Paths outside the worktree come first. */
function nextGroup(verdict: DetailedVerdict, allowed: ReadonlySet<string>, opinion: PluginOpinion): Check[] {
  const open = openChecks(verdict, allowed, opinion === "ask")
  const first = open.find((check) => check.permission === "external_directory") ?? open[0]
  return open.filter((check) => check.permission === first?.permission)
}

/** Lists the checks that ask and are not allowed yet. `all` includes checks that the rules allow. */
function openChecks({ details }: DetailedVerdict, allowed: ReadonlySet<string>, all = false): Check[] {
  const asking = details.filter(({ judgement }) => all || judgement.action === "ask")
  return asking.map(({ check }) => check).filter((check) => !allowed.has(keyOf(check)))
}

/** Identifies a check, so that its answer still applies when the rules are read again. */
function keyOf(check: Check): string {
  return JSON.stringify([check.permission, check.forms, check.resolved])
}

/** Returns the question about checks of one permission, with the patterns that "always" would remember. */
function questionOf(request: SessionAsk, group: readonly Check[]): PermissionRequest {
  const patterns = [...new Set(group.map((check) => check.pattern))]
  const metadata: Record<string, unknown> = { ...request.metadata }
  const details = { resolved: "resolved", reasons: "reason", protected: "protection" } as const
  for (const [name, key] of Object.entries(details)) {
    const found = group.flatMap((check) => check[key] ?? [])
    if (found.length > 0) metadata[name] = [...new Set(found)]
  }
  const hidden = [...patterns, ...request.patterns].some(invisibleCharacters)
  if (hidden) metadata.invisibleCharacters = true

  // All or nothing: if only a part is remembered, the next call asks again.
  const remembered = !hidden && group.every((check) => check.remember !== undefined)
  return {
    id: newId("per"),
    sessionID: request.sessionID,
    permission: group[0]?.permission ?? request.permission,
    patterns,
    always: remembered ? [...new Set(group.flatMap((check) => check.remember ?? []))] : [],
    metadata,
    tool: request.tool,
  }
}

function refusal({ permission, patterns }: PermissionRequest, { reply, source }: Answer): PermissionError {
  if (source === "no-terminal" || source === "auto")
    return new PermissionError({ kind: "unanswered", permission, patterns, by: source })
  const feedback = reply.reply === "reject" ? reply.message : undefined
  return new PermissionError({ kind: "rejected", permission, patterns, by: "user", feedback })
}

import { isDeepStrictEqual } from "node:util"
import type { Action, PermissionReply, PermissionRequest, ReplySource } from "../schema/permission.ts"
import { abortedError, orAbort, throwIfAborted } from "../util/abort.ts"
import { newId } from "../util/id.ts"
import { invisibleCharacters } from "../util/invisible.ts"
import { checkRequest, type DetailedVerdict, rulesThatAllow } from "./check.ts"
import { PermissionError } from "./errors.ts"
import { decidingRules, type Explanation, explainRequest } from "./explain.ts"
import {
  type Answer,
  createPendingRequests,
  partsOf,
  type ReplyDependencies,
  type ReplyOutcome,
} from "./pending-requests.ts"
import type { Policy } from "./policy.ts"
import type { Check, PermissionAsk, Scope, SessionAsk, Verdict } from "./request.ts"
import { permissionType } from "./rules.ts"

/** Asks plugins to decide on a request that the rules do not deny. `action` is the rules' verdict. */
export type Decide = (request: SessionAsk, action: "allow" | "ask", signal: AbortSignal) => Promise<Action>

/** Dependencies of {@link createPermission}. */
export interface PermissionDependencies extends ReplyDependencies {
  /** Absolute path of the home directory, to which `~` and `$HOME` expand. */
  home: string
  /** The user's config directories and the engine's data directory. See `Scope.guarded`. */
  guarded?: readonly string[]
  /** Asks the plugins for a decision. Undefined if there are no plugins. */
  decide?: Decide
  /** Removes secrets from a value. */
  hide?<T>(value: T): T
}

/** Applies the rules to requests, and asks the user if the rules require it. */
export interface Permission {
  /**
   * Resolves if the whole request is allowed. Judges the whole request before it asks the user. Awaits `beforeQuestion`
   * before each question, so that clients see the call first. Throws `PermissionError` if a rule, a plugin or the user
   * refuses the request, or if no user answers it. If the signal aborts, throws the signal's reason if it is a
   * `TackleError`, otherwise an `AbortedError`.
   */
  ask(
    request: SessionAsk,
    scope: Scope,
    signal: AbortSignal,
    beforeQuestion?: () => Promise<void>,
  ): Promise<void>
  /** Returns the verdict of the rules without asking the user. */
  check(request: PermissionAsk, scope: Scope): Promise<Verdict>
  /** Returns the verdict and its reasons without asking the user. */
  explain(request: PermissionAsk, scope: Scope): Promise<Explanation>
  /**
   * Answers a request. Only the first reply counts. For an `always` reply, stores the grants and answers other requests
   * that the grants allow, and then resolves. Throws `UsageError` if the reply is invalid, or if an `always` reply
   * allows more than the request offers. If this method throws, the request stays pending.
   */
  reply(requestID: string, reply: PermissionReply, source: ReplySource): Promise<ReplyOutcome>
  /** Lists the pending requests of a session, or of all sessions, oldest first. */
  pending(sessionID?: string): PermissionRequest[]
}

/**
 * Creates one permission service for all sessions, because a grant from one session can answer a request from another.
 */
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
      const policy = scope.policy()
      const verdict = await checkRequest(request, { ...scope, policy: () => policy }, home)
      throwIfDenied(verdict)
      // Plugins are asked once per request. They receive no secrets.
      opinion ??= decide ? await askPlugins(decide, hide(request), verdict, signal) : "none"
      if (opinion === "allow") return
      const group = openChecks(verdict, allowed, opinion === "ask")
      if (group.length === 0) return
      await beforeQuestion?.()
      const decidedBy =
        opinion === "ask"
          ? [{ permission: request.permission, pattern: "*", action: "ask", source: "a plugin" }]
          : decidingRules(verdict, { checks: group, given: policy })
      const explained = { ...request, metadata: { ...request.metadata, decidedBy } }
      const question = questionOf(explained, group, verdict.policy)
      await askUser(request, { question, group, scope, signal, opinion })
      for (const check of group) allowed.add(keyOf(check))
    }
  }

  async function askUser(
    request: SessionAsk,
    {
      group,
      scope,
      signal,
      opinion,
      ...rest
    }: {
      question: PermissionRequest
      group: readonly Check[]
      scope: Scope
      signal: AbortSignal
      opinion: PluginOpinion
    },
  ): Promise<void> {
    const question = withoutSecrets(rest.question)
    const asked = new Set(group.map(keyOf))
    const answered = pending.add(question, scope.worktree, async () => {
      // A new rule does not override a plugin's decision to ask.
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

  /**
   * Removes secrets from a question. If a pattern contains a secret, "always" is not offered, because the pattern would
   * not match without the secret.
   */
  function withoutSecrets(question: PermissionRequest): PermissionRequest {
    const hidden = hide(question)
    const patterns = ({ rules, ...request }: PermissionRequest) => [
      rules,
      partsOf(request).map(({ always }) => always),
    ]
    if (isDeepStrictEqual(patterns(hidden), patterns(question))) return hidden
    const also = hidden.also?.map((part) => ({ ...part, always: [] }))
    const metadata = { ...hidden.metadata, onlyOnce: ["it contains a secret"] }
    return { ...hidden, always: [], also, rules: [], metadata }
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

/** Throws `PermissionError` if a rule denies any part of the request. */
function throwIfDenied({ details }: DetailedVerdict): void {
  const denied = details.filter(({ judgement }) => judgement.action === "deny")
  const [first] = denied
  if (!first) return
  const { permission } = first.check
  const patterns = denied.flatMap(({ check }) => (check.permission === permission ? [check.pattern] : []))
  const { rule, layer } = first.judgement
  const ceiling = layer === "ceiling" ? rule?.source?.file : undefined
  throw new PermissionError({ kind: "denied", permission, patterns, by: "rule", rule, ceiling })
}

/**
 * The plugins' decision. `allow`: the user is not asked. `ask`: the user is asked even if the rules allow the request.
 * `none`: the rules decide.
 */
type PluginOpinion = "allow" | "ask" | "none"

/** Returns the plugins' decision. Throws `PermissionError` if a plugin denies the request. */
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
  // Only the user can allow a loop to continue, because a plugin would give the same answer every time.
  const loops = details.some(({ check }) => check.permission === "doom_loop")
  return asks && !loops ? "allow" : "none"
}

/**
 * Returns the checks that need the user's answer and are not allowed yet. If `all` is true, also returns checks that
 * the rules allow.
 */
function openChecks({ details }: DetailedVerdict, allowed: ReadonlySet<string>, all = false): Check[] {
  const asking = details.filter(({ judgement }) => all || judgement.action === "ask")
  return asking.map(({ check }) => check).filter((check) => !allowed.has(keyOf(check)))
}

/** Returns a key that identifies a check, so that its answer still applies after the rules are read again. */
function keyOf(check: Check): string {
  return JSON.stringify([check.permission, check.forms, check.resolved])
}

/** Returns one question for all checks, with the patterns that "always" would remember. */
function questionOf(request: SessionAsk, group: readonly Check[], policy: Policy): PermissionRequest {
  const metadata: Record<string, unknown> = { ...request.metadata }
  const details = { resolved: "resolved", reasons: "reason", protected: "protection" } as const
  for (const [name, key] of Object.entries(details)) {
    const found = group.flatMap((check) => check[key] ?? [])
    if (found.length > 0) metadata[name] = [...new Set(found)]
  }
  const hidden = [...group.map(({ pattern }) => pattern), ...request.patterns].some(invisibleCharacters)
  if (hidden) metadata.invisibleCharacters = true

  // "always" must cover every check of the question. Otherwise the next call would ask again.
  const remembered = !hidden && group.every((check) => check.remember !== undefined)
  if (!remembered) metadata.onlyOnce = [...new Set(group.flatMap(reasonsForOnce))]
  const own = permissionType(request.permission)
  const permissions = [...new Set(group.map(({ permission }) => permission))].sort(
    (a, b) => Number(b === own) - Number(a === own),
  )
  const [first, ...also] = permissions.map((permission) => {
    const checks = group.filter((check) => check.permission === permission)
    const always = remembered ? checks.flatMap(({ remember }) => remember ?? []) : []
    return {
      permission,
      patterns: [...new Set(checks.map(({ pattern }) => pattern))],
      always: [...new Set(always)],
    }
  })
  return {
    id: newId("per"),
    sessionID: request.sessionID,
    ...(first ?? { permission: request.permission, patterns: [], always: [] }),
    also: also.length > 0 ? also : undefined,
    rules: rulesThatAllow(group, policy) ?? [],
    metadata,
    tool: request.tool,
  }
}

/** Returns the reasons why "always" is not available for a check, or an empty array if it is available. */
function reasonsForOnce({ permission, pattern, protection, remember, onlyOnce, options }: Check): string[] {
  if (invisibleCharacters(pattern)) return ["it contains invisible characters"]
  if (remember !== undefined) return []
  if (onlyOnce !== undefined) return [onlyOnce]
  if (protection !== undefined) return [`${pattern} is protected`]
  if (permission === "doom_loop") return ["each repetition is a new decision"]
  if (options.counts !== undefined || options.span !== undefined)
    return [`only a rule that covers "${permission}: ${options.span ?? "*"}" can allow ${pattern}`]
  return [`no rule can describe only ${pattern}`]
}

function refusal(
  { permission, patterns, rules }: PermissionRequest,
  { reply, source }: Answer,
): PermissionError {
  if (source === "no-terminal" || source === "client" || source === "auto")
    return new PermissionError({ kind: "unanswered", permission, patterns, by: source, rules })
  const feedback = reply.reply === "reject" ? reply.message : undefined
  return new PermissionError({ kind: "rejected", permission, patterns, by: "user", feedback })
}

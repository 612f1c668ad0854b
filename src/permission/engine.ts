import type { EventInput } from "../event/events.ts"
import {
  type Action,
  type CallReference,
  type Grant,
  PermissionReply,
  type PermissionRequest,
  type ReplySource,
} from "../schema/permission.ts"
import { abortedError, orAbort, throwIfAborted } from "../util/abort.ts"
import { UsageError } from "../util/errors.ts"
import { newId } from "../util/id.ts"
import { checkRequest, type DetailedVerdict } from "./check.ts"
import { PermissionError } from "./errors.ts"
import { type Explanation, explainRequest } from "./explain.ts"
import { grantsOf } from "./grants.ts"
import { invisibleCharacters } from "./invisible.ts"
import { type Answer, createPendingTable } from "./pending.ts"
import type { Check, PermissionAsk, Scope, Verdict } from "./request.ts"

export type { PermissionAsk, Scope, Verdict } from "./request.ts"

/** What became of an answer: taken, too late, or not about anything that waits here. */
export type ReplyOutcome = "applied" | "already" | "unknown"

/** A request with the call it belongs to. */
export interface SessionAsk extends PermissionAsk {
  sessionID: string
  tool?: CallReference
}

export interface PermissionDependencies {
  /** The home directory, for `~` and `$HOME`. Absolute. */
  home: string
  /** Directories of the person's own config, of every scope: see `Scope.guarded`. */
  guarded?: readonly string[]
  publish(event: EventInput): void
  /** Keeps grants. When it resolves, every policy read from then on has them. */
  saveGrants(grants: Grant[]): Promise<void>
  /** Takes grants back that were kept for a request which ended meanwhile. */
  dropGrants(ids: string[]): Promise<void>
  /**
   * What plugins say to a request that the rules allow or ask about: they may answer a question in the person's place,
   * or tighten. Absent where there is none.
   */
  decide?(request: SessionAsk, action: "allow" | "ask", signal: AbortSignal): Promise<Action>
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
  /** Requests whose grants are being kept: their answer is given. */
  const saving = new Set<string>()

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
      word ??= await askPlugins(request, verdict, signal)
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

  /** Once for a request, however many questions it takes. */
  async function askPlugins(
    request: SessionAsk,
    { action, details }: DetailedVerdict,
    signal: AbortSignal,
  ): Promise<PluginWord> {
    if (!decide || action === "deny") return "none"
    const word = await decide(hide(request), action, signal)
    if (word === "deny") {
      const { permission, patterns } = request
      throw new PermissionError({ kind: "rejected", permission, patterns, by: "plugin" })
    }
    if (word === "ask") return action === "allow" ? "tightened" : "none"
    // Whether a loop goes on is for a person to say: what repeats itself would be answered again and again.
    const loop = details.some(({ check }) => check.permission === "doom_loop")
    return action === "ask" && !loop ? "answered" : "none"
  }

  async function askPerson({ request, scope, signal, group, tightened }: PersonalAsk): Promise<void> {
    const question = hiding(describeGroup(request, group))
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
      if (table.take(question.id)) announce(question, { reply: { reply: "reject" }, source: "abort" })
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

  async function reply(
    requestID: string,
    given: PermissionReply,
    source: ReplySource,
  ): Promise<ReplyOutcome> {
    const entry = table.get(requestID)
    if (!entry) return table.wasAnswered(requestID) ? "already" : "unknown"
    if (saving.has(requestID)) return "already"
    const parsed = PermissionReply.safeParse(given)
    // Whatever is not understood must not count as a yes.
    if (!parsed.success)
      throw new UsageError('A reply is "once", "always" or "reject". This one is none of them.')
    const answer: Answer = { reply: parsed.data, source }
    if (parsed.data.reply !== "always") return settle(requestID, answer)

    const grants = grantsOf(parsed.data, entry.request, entry.worktree)
    saving.add(requestID)
    try {
      await saveGrants(grants)
    } finally {
      saving.delete(requestID)
    }
    const outcome = settle(requestID, answer)
    if (outcome !== "applied") {
      // The call ended while the grants were being kept: then nobody was answered, and nothing is granted.
      await dropGrants(grants.map(({ id }) => id))
      return outcome
    }
    // Also of other sessions: a grant may hold for subagents side by side, or for all of the project.
    for (const other of table.ofSession()) {
      if (await other.isAllowed()) settle(other.request.id, { reply: { reply: "once" }, source: "grant" })
    }
    return outcome
  }

  function settle(requestID: string, answer: Answer): ReplyOutcome {
    const entry = table.get(requestID)
    if (!entry || !table.take(requestID)) return "already"
    announce(entry.request, answer)
    entry.settle(answer)
    return "applied"
  }

  function announce(request: PermissionRequest, { reply: given, source }: Answer): void {
    const message = given.reply === "reject" && given.message !== undefined ? { message: given.message } : {}
    const { id: requestID, sessionID } = request
    publish({ type: "permission.replied", sessionID, requestID, reply: given.reply, source, ...message })
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

/** What plugins said: answered in the person's place, asked where the rules would not, or nothing that counts. */
type PluginWord = "answered" | "tightened" | "none"

function refuseDenied({ details }: DetailedVerdict): void {
  const denied = details.filter(({ judgement }) => judgement.action === "deny")
  const [first] = denied
  if (!first) return
  const { permission } = first.check
  const patterns = denied
    .filter(({ check }) => check.permission === permission)
    .map(({ check }) => check.pattern)
  const { rule } = first.judgement
  throw new PermissionError({ kind: "denied", permission, patterns, by: "rule", ...(rule ? { rule } : {}) })
}

/** What still has to be asked: places outside first, since they say most about what the rest means. */
function openChecks({ details }: DetailedVerdict, allowed: ReadonlySet<string>, tightened = false): Check[] {
  const asked = details.filter(({ judgement }) => tightened || judgement.action === "ask")
  const open = asked.map(({ check }) => check)
  const isExternal = (check: Check) => (check.permission === "external_directory" ? 0 : 1)
  return open.filter((check) => !allowed.has(keyOf(check))).sort((a, b) => isExternal(a) - isExternal(b))
}

/** One thing that is asked, whoever asks: so that an answer holds for it when the rules are read again. */
function keyOf(check: Check): string {
  return JSON.stringify([check.permission, check.forms, check.resolved])
}

function describeGroup(request: SessionAsk, group: readonly Check[]): PermissionRequest {
  const patterns = [...new Set(group.map((check) => check.pattern))]
  const metadata: Record<string, unknown> = { ...request.metadata }
  const note = (name: string, values: readonly (string | undefined)[]) => {
    const found = [...new Set(values.filter((value) => value !== undefined))]
    if (found.length > 0) metadata[name] = found
  }
  note(
    "resolved",
    group.map((check) => check.resolved),
  )
  note(
    "reasons",
    group.map((check) => check.reason),
  )
  note(
    "protected",
    group.map((check) => check.protection),
  )
  const hidden = [...patterns, ...request.patterns].some(invisibleCharacters)
  if (hidden) metadata.invisibleCharacters = true

  // Remembering a part of what is asked would not spare the next question, so it is all or nothing.
  const remembered = group.every((check) => check.remember !== undefined) && !hidden
  const always = remembered ? [...new Set(group.flatMap((check) => check.remember ?? []))] : []
  const permission = group[0]?.permission ?? request.permission
  const question: PermissionRequest = {
    id: newId("per"),
    sessionID: request.sessionID,
    permission,
    patterns,
    always,
    metadata,
  }
  if (request.tool) question.tool = request.tool
  return question
}

function refusal({ permission, patterns }: PermissionRequest, { reply, source }: Answer): PermissionError {
  const about = { permission, patterns }
  if (source === "no-terminal")
    return new PermissionError({ ...about, kind: "unanswered", by: "no-terminal" })
  if (source === "auto") return new PermissionError({ ...about, kind: "unanswered", by: "auto" })
  const feedback = reply.reply === "reject" && reply.message !== undefined ? { feedback: reply.message } : {}
  return new PermissionError({ ...about, kind: "rejected", by: "person", ...feedback })
}

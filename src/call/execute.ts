import { createHash } from "node:crypto"
import { detectLoop } from "../permission/doom-loop.ts"
import { PermissionError } from "../permission/errors.ts"
import type { Action, CallReference } from "../schema/permission.ts"
import { act, complete, fail, progress, start } from "../schema/tool-moves.ts"
import type { ToolState, ToolStateRunning } from "../schema/tool-state.ts"
import type { CallTools } from "../tool/call-tools.ts"
import type { AskRequest, ToolContext } from "../tool/context.ts"
import { executeValidated, type RunOptions } from "../tool/run.ts"
import type { SampleResult } from "../tool/sample.ts"
import { createSpillOpener } from "../tool/spill.ts"
import { defaultLimits, truncateOutput } from "../tool/truncate.ts"
import { AbortedError, orAbort, TimeoutError, throwIfAborted } from "../util/abort.ts"
import { TackleError } from "../util/errors.ts"
import { canonicalJson, isRecord, plainRecord } from "../util/json.ts"
import type { Call, CallHost, CallOutcome, PastCall } from "./call.ts"
import { contain } from "./containment.ts"
import { type CallEnd, hooksAfter } from "./plugin-hooks.ts"
import type { PreparedCall } from "./prepare.ts"
import { LoopRefusedError, settleFailure } from "./settle.ts"
import { createThrottle } from "./throttle.ts"
import { createTimeLimit, type TimeLimit } from "./time-limit.ts"

/** Progress of one call is stored and shown at most ten times a second. */
const progressIntervalMs = 100

/** How long a tool may take to stop by itself after an abort, such as to end its processes. */
const abortGraceMs = 5_000

/** Why a question is taken back whose call did not wait for the answer. */
const callOver = new AbortedError("The call has ended: nobody is asked for it any more.")

/**
 * One prepared call from asking leave to its last state. Rejects only where a state cannot be stored. `callTools`: what
 * the tool may call others with.
 */
export async function executeCall(
  prepared: PreparedCall,
  past: readonly PastCall[],
  host: CallHost,
  callTools?: CallTools,
): Promise<CallOutcome> {
  const { call, tool } = prepared
  let unstored: { error: unknown } | undefined
  const report = (state: ToolState) =>
    host.onState(call.callID, state).catch((error: unknown) => {
      unstored = { error }
      throw error
    })
  const hide = <T>(value: T): T => host.mask?.value(value) ?? value
  let state: PreparedCall["state"] | ToolStateRunning = prepared.state
  let last: CallOutcome["state"]
  const { timeout } = tool.definition
  const limit = createTimeLimit(host.signal, {
    ms: timeout,
    expired: `The ${tool.id} tool was stopped: it did not finish within ${timeout} ms.`,
  })
  const progressing = createThrottle<void>(progressIntervalMs, () => {
    // A report that cannot be stored will fail again, and be seen, when the result is stored.
    host.onState(call.callID, state).catch((error: unknown) => host.onEscape(tool.id, error))
  })

  const over = new AbortController()
  const ctx = createContext(prepared, host, limit, {
    // What a tool asked and does not wait for is asked in the name of a call: with it, it ends.
    signal: AbortSignal.any([limit.signal, over.signal]),
    onProgress(update) {
      if (state.status !== "running") return
      state = progress(state, hide(update))
      progressing.push()
    },
    async onLeave() {
      if (state.status !== "running" || !state.harmless || onlyReads(tool)) return
      state = act(state)
      await report(state)
    },
  })
  if (callTools) ctx.call = callTools

  try {
    assertStillAtWork(host)
    await askLoop(prepared, past, host)
    await askForThirdParty(prepared, host)
    throwIfAborted(host.signal)
    const harmless = onlyReads(tool) || asksFirst(tool)
    state = start(prepared.state, prepared.state.input, Date.now(), { harmless })
    if (prepared.repaired !== undefined)
      state = progress(state, { metadata: { repaired: prepared.repaired } })
    await report(state)
    throwIfAborted(host.signal)

    limit.start()
    const work = contain(
      () => executeValidated(tool, prepared.args, ctx, runOptions(host)),
      (error) => host.onEscape(tool.id, error),
    )
    const result = hide(await settleOrAbort(work, limit.signal))
    prepared.past.result = digest(result.output)
    if (result.handover && tool.source.kind === "builtin") host.turn.handover = result.handover
    limit.end()
    const metadata = { ...state.metadata, ...result.metadata }
    const end = await endOf(prepared, host, { ...result, metadata }, "completed")
    last = complete(state, { ...result, ...recut(end, result, ctx, host) }, Date.now())
  } catch (error) {
    // It is no failure of the tool, and a further state would not be stored either.
    if (unstored) throw unstored.error
    const failure = hide(settleFailure(error, { callID: call.callID, tool: tool.id, turn: host.turn, state }))
    // A refused loop got no new result: it must not look like a change, which would let the next rounds run.
    if (failure.metadata.kind !== "loop") prepared.past.result = digest(failure.error)
    const { error: text, metadata } = failure
    const end = await endOf(prepared, host, { title: tool.id, output: text, metadata }, "error")
    // Of what kind the failure is, is not a plugin's to say.
    last = fail(state, { error: end.output, metadata: { ...end.metadata, ...metadata } }, Date.now())
  } finally {
    progressing.stop()
    limit.end()
    over.abort(callOver)
  }
  await report(last)
  return { callID: call.callID, state: last }
}

/** The end of a call after the plugins have had it, secrets hidden. Never rejects. */
async function endOf(
  { call, tool, state }: PreparedCall,
  host: CallHost,
  { title, output, metadata }: CallEnd,
  status: "completed" | "error",
): Promise<CallEnd> {
  const about = { tool: tool.id, sessionID: host.sessionID, callID: call.callID, args: state.input, status }
  const end = await hooksAfter(host.plugins, about, { title, output, metadata }, host.signal)
  return host.mask?.value(end) ?? end
}

/** What plugins made of an output has its limits too. */
function recut(end: CallEnd, result: CallEnd, ctx: ToolContext, host: CallHost): CallEnd {
  if (end.output === result.output) return end
  const { limits, canDelegate = false } = runOptions(host)
  const cut = truncateOutput(end.output, {
    limits: { ...defaultLimits, ...limits },
    spill: ctx.spill,
    canDelegate,
  })
  return { ...end, output: cut.output, metadata: { ...end.metadata, ...cut.metadata } }
}

/** Only our own tools are believed about what they do. */
function onlyReads({ definition, source }: PreparedCall["tool"]): boolean {
  return source.kind === "builtin" && definition.access === "read"
}

function asksFirst({ definition, source }: PreparedCall["tool"]): boolean {
  return source.kind === "builtin" && definition.asksFirst === true
}

function runOptions({ limits, offered }: CallHost): RunOptions {
  const canDelegate = offered.has("task")
  return limits ? { limits, canDelegate } : { canDelegate }
}

/** What was called for one agent is not run once the session has gone over to another: other rules hold for it. */
function assertStillAtWork({ turn: { handover } }: CallHost): void {
  if (!handover) return
  throw new TackleError(
    `This call was not run: the session has gone over to the agent ${handover.agent}. Make it again if it is still needed.`,
    { code: "call.handed-over", recoverable: true },
  )
}

/** The same call again and again is a question to the person before it is an action. */
async function askLoop(prepared: PreparedCall, past: readonly PastCall[], host: CallHost): Promise<void> {
  const loop = detectLoop(past, prepared.past)
  if (!loop) return
  const { tool, state } = prepared
  try {
    await ask(
      {
        permission: "doom_loop",
        patterns: [tool.id],
        metadata: { tool: tool.id, input: state.input, ...loop },
      },
      prepared,
      host,
      host.signal,
    )
  } catch (error) {
    if (!(error instanceof PermissionError)) throw error
    throw new LoopRefusedError(tool.id, loop.count, error)
  }
}

/** Tools that are not ours are asked for before they run, whether they ask by themselves or not. */
async function askForThirdParty(prepared: PreparedCall, host: CallHost): Promise<void> {
  const { tool, args, state } = prepared
  if (tool.source.kind === "builtin") return
  const named = tool.definition.ask
    ? namedPatterns(tool.id, tool.definition.ask(args))
    : { patterns: [canonicalJson(state.input)] }
  await ask(
    { permission: tool.id, ...named, metadata: { tool: tool.id, input: state.input } },
    prepared,
    host,
    host.signal,
  )
}

/** What a tool's own `ask` says. It names patterns and nothing else: what is asked for stays the tool's id. */
function namedPatterns(tool: string, named: unknown): { patterns: string[]; always?: string[] } {
  const { patterns, always } = isRecord(named) ? named : {}
  if (!isTexts(patterns) || (always !== undefined && !isTexts(always))) {
    throw new TypeError(
      `The ask of the ${tool} tool must return { patterns: string[], always?: string[] }. This is a defect of the tool, not of the call.`,
    )
  }
  return always === undefined ? { patterns } : { patterns, always }
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((entry) => typeof entry === "string")
}

function ask(
  request: AskRequest,
  { call }: PreparedCall,
  host: CallHost,
  signal: AbortSignal,
): Promise<void> {
  const tool = referenceTo(call, host)
  return host.permission.ask(
    { ...request, sessionID: host.sessionID, tool },
    host.scope,
    signal,
    host.announced,
  )
}

function referenceTo({ callID }: Call, { messageID, parent }: CallHost): CallReference {
  return { messageID, callID, ...(parent ? { parent } : {}) }
}

/** What a call does with what its tool tells the context. */
interface ContextHooks {
  /** Of what it asks the person. */
  signal: AbortSignal
  onProgress(update: { title?: string; metadata?: Record<string, unknown> }): void
  /** Before the tool hears that it may go on. */
  onLeave(): Promise<void>
}

function createContext(
  prepared: PreparedCall,
  host: CallHost,
  limit: TimeLimit,
  { signal, onProgress, onLeave }: ContextHooks,
): ToolContext {
  const { call, tool } = prepared
  const { spawn, question, sample, form } = host
  const askedFor = tool.source.kind === "builtin" ? undefined : tool.id
  const ctx: ToolContext = {
    sessionID: host.sessionID,
    messageID: host.messageID,
    callID: call.callID,
    agent: host.agent,
    abort: limit.signal,
    directory: host.directory,
    worktree: host.worktree,
    files: host.files,
    spill: createSpillOpener({
      directory: host.spillDirectory,
      name: spillName(call.callID, host.messageID),
      ...(host.spillBytes === undefined ? {} : { maxBytes: host.spillBytes }),
      ...(host.mask === undefined ? {} : { mask: host.mask }),
    }),
    async metadata({ title, metadata, ...rest }) {
      const known = isRecord(metadata) ? metadata : {}
      onProgress({
        ...(typeof title === "string" ? { title } : {}),
        metadata: plainRecord({ ...known, ...rest }),
      })
    },
    async mayRead(path) {
      const { checks } = await host.permission.check({ permission: "read", patterns: [path] }, host.scope)
      // Leave for the directory that is searched was given already.
      const actions = checks.filter(({ permission }) => permission === "read").map(({ action }) => action)
      return strictest(actions)
    },
    async ask(request) {
      // Leave for a third party's own id was given before it started: rules may still deny, nobody is asked twice.
      const again = request.permission === askedFor
      const check = again ? await host.permission.check(request, host.scope) : undefined
      if (check && check.action !== "deny") return
      await limit.outside(() => ask(request, prepared, host, signal))
      await onLeave()
    },
  }
  if (host.model) ctx.model = host.model
  if (host.changes) ctx.changes = host.changes
  if (host.todo) ctx.todo = host.todo
  if (host.jobs) ctx.jobs = host.jobs
  if (host.sandbox) ctx.sandbox = host.sandbox
  // Our own tools ask before they use it.
  if (host.lsp && tool.source.kind === "builtin") ctx.lsp = host.lsp
  if (host.formatter && tool.source.kind === "builtin") ctx.formatter = host.formatter
  // The task tool asks before it uses this; nobody else's word would do.
  if (spawn && tool.source.kind === "builtin")
    ctx.spawn = (request) => spawn(request, referenceTo(call, host))
  if (question)
    ctx.question = (questions, document, stop) => {
      const asked = document ? { questions, document } : { questions }
      const ended = stop ? AbortSignal.any([stop, signal]) : signal
      return limit.outside(() => question(asked, referenceTo(call, host), ended))
    }
  // Our own code says in it which server asks.
  if (form && tool.source.kind === "mcp")
    ctx.form = (shown, stop) => limit.outside(() => form(shown, AbortSignal.any([stop, signal])))
  // Our own code asks for leave before it hands on what a server asks.
  if (sample && tool.source.kind === "mcp") {
    const sampled: NonNullable<SampleResult["spent"]>[] = []
    ctx.sample = async (request) => {
      const answer = await limit.outside(() => sample(request))
      if (answer.spent) sampled.push(answer.spent)
      if (answer.spent) onProgress({ metadata: { sampled: [...sampled] } })
      return answer
    }
  }
  if (host.catalogue && tool.source.kind === "builtin") ctx.catalogue = host.catalogue
  if (host.plan) ctx.plan = host.plan
  // What it gives counts as told: only a tool that passes it on may take it.
  if (host.instructions && tool.source.kind === "builtin") ctx.instructions = host.instructions
  if (host.extra) ctx.extra = host.extra
  return ctx
}

function strictest(actions: readonly Action[]): Action {
  return (["deny", "ask"] as const).find((action) => actions.includes(action)) ?? "allow"
}

/**
 * A call's id as part of a file's name. Some providers put whole signatures into their ids, others count them anew in
 * each answer: the end of the message's id, which is random, tells those apart.
 */
function spillName(callID: string, messageID: string): string {
  return `${callID.replaceAll(/[^A-Za-z0-9_-]/g, "_").slice(0, 64)}_${messageID.slice(-6)}`
}

/** After an abort the tool has a moment to stop by itself; one that does not is left behind. */
async function settleOrAbort<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  try {
    return await orAbort(work, signal)
  } catch (error) {
    if (!signal.aborted) throw error
    const { promise: patience, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, abortGraceMs)
    // Its own end does not matter any more: the call is over as aborted.
    await Promise.race([
      work.then(
        () => resolve(),
        () => resolve(),
      ),
      patience,
    ])
    clearTimeout(timer)
    throw error instanceof TimeoutError ? error : new AbortedError(undefined, error)
  }
}

function digest(text: string): string {
  return createHash("sha1").update(text).digest("base64")
}

import { act, complete, fail, progress, start } from "../schema/tool-moves.ts"
import type { ToolState, ToolStateRunning } from "../schema/tool-state.ts"
import type { CallTools, ToolContext } from "../tool/context.ts"
import { executeValidated, type RunOptions } from "../tool/run.ts"
import { defaultLimits, truncateOutput } from "../tool/truncate.ts"
import { AbortedError, orAbort, TimeoutError, throwIfAborted } from "../util/abort.ts"
import { TackleError } from "../util/errors.ts"
import { askForThirdParty, askLoop } from "./ask-leave.ts"
import type { CallHost, CallOutcome, PastCall } from "./call.ts"
import { createContext } from "./call-context.ts"
import { contain } from "./containment.ts"
import { type CallEnd, hooksAfter } from "./plugin-hooks.ts"
import type { PreparedCall } from "./prepare.ts"
import { settleFailure } from "./settle.ts"
import { createThrottle } from "./throttle.ts"
import { createTimeLimit } from "./time-limit.ts"
import { createWaits } from "./waits.ts"

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
  given: CallHost,
  callTools?: CallTools,
): Promise<CallOutcome> {
  const { call, tool } = prepared
  let unstored: { error: unknown } | undefined
  const noteUnstored = (error: unknown): never => {
    unstored = { error }
    throw error
  }
  const { announced } = given
  const host: CallHost = announced ? { ...given, announced: () => announced().catch(noteUnstored) } : given
  const report = (state: ToolState) => host.onState(call.callID, state).catch(noteUnstored)
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
  const waits = createWaits()
  const ended = () => ({ at: Date.now(), waited: waits.total() })
  const ctx = createContext(prepared, host, limit, {
    waits,
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
    prepared.past.result = result.output
    if (result.handover && tool.source.kind === "builtin") host.turn.handover = result.handover
    limit.end()
    const metadata = { ...state.metadata, ...result.metadata }
    const end = await endOf(prepared, host, { ...result, metadata }, "completed")
    last = complete(state, { ...result, ...recut(end, result, ctx, host) }, ended())
  } catch (error) {
    // It is no failure of the tool, and a further state would not be stored either.
    if (unstored) throw unstored.error
    const failure = hide(settleFailure(error, { callID: call.callID, tool: tool.id, turn: host.turn, state }))
    // A refused loop got no new result: it must not look like a change, which would let the next rounds run.
    if (failure.metadata.kind !== "loop") prepared.past.result = failure.error
    const { error: text, metadata } = failure
    const end = await endOf(prepared, host, { title: tool.id, output: text, metadata }, "error")
    // Of what kind the failure is, is not a plugin's to say.
    last = fail(state, { error: end.output, metadata: { ...end.metadata, ...metadata } }, ended())
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

import type { PluginHost } from "../plugin/host.ts"
import { act, complete, fail, progress, start } from "../schema/tool-moves.ts"
import type { ToolState, ToolStateRunning } from "../schema/tool-state.ts"
import { StoreError, StoreRemovedError } from "../store/store.ts"
import type { CallTools, ToolContext } from "../tool/context.ts"
import { executeValidated, type RunOptions } from "../tool/run.ts"
import { defaultLimits, truncateOutput } from "../tool/truncate.ts"
import { AbortedError, orAbort, TimeoutError, throwIfAborted, within } from "../util/abort.ts"
import { TackleError } from "../util/errors.ts"
import { plainRecord } from "../util/json.ts"
import { currentTime } from "../util/time.ts"
import { askAboutLoop, askForThirdParty } from "./ask.ts"
import { settleFailure } from "./call-failure.ts"
import type { CallOutcome, PastCall, Step } from "./context.ts"
import { containUntilExit } from "./escaped-errors.ts"
import { type HookedCall, type PreparedCall, polls } from "./prepare.ts"
import { createTimeLimit, createUserWaits } from "./time-limit.ts"
import { createToolContext } from "./tool-context.ts"

/** Minimum time in milliseconds between two stored progress reports of a call. */
const progressIntervalMs = 100

/** Time in milliseconds before the first progress report. The result of a short call replaces the report. */
const firstProgressMs = 20

/** Time in milliseconds within which a tool must stop after an abort, including ending its processes. */
const abortGraceMs = 5_000

/** The reason for withdrawing a question if its call ends without waiting for the answer. */
const callOver = new AbortedError("The call has ended, so its question was withdrawn.")

/**
 * Runs one prepared call, from its permission requests to its last state. `callTools` runs the calls that the tool
 * makes. Rejects only if a state cannot be stored.
 */
export async function executeCall(
  prepared: PreparedCall,
  past: readonly PastCall[],
  step: Step,
  callTools?: CallTools,
): Promise<CallOutcome> {
  const { call, tool } = prepared
  const { run } = step.active
  const { engine } = run
  const { value: hide } = engine.mask

  let unstored: { error: unknown } | undefined
  const noteUnstored = (error: unknown): never => {
    unstored = { error }
    throw error
  }
  const announce = async () => step.stored?.().catch(noteUnstored)
  const report = (state: ToolState) => step.report(call.callID, state).catch(noteUnstored)

  let state: PreparedCall["state"] | ToolStateRunning = prepared.state
  let last: CallOutcome["state"]
  const { timeout } = tool.definition
  /** Stops the tool when its result can no longer be stored. */
  const lost = new AbortController()
  const limit = createTimeLimit(AbortSignal.any([run.signal, lost.signal]), {
    ms: timeout,
    expired: `The ${tool.id} tool did not finish within ${timeout} ms.`,
  })
  const progressing = createThrottle(progressIntervalMs, () => {
    step.report(call.callID, state).catch((error: unknown) => {
      // The result replaces a state that could not be stored. If the result cannot be stored either, storing the result
      // reports the error.
      if (error instanceof StoreRemovedError) lost.abort(error)
      else if (!StoreError.isThrown(error)) engine.onEscape(tool.id, error)
    })
  })

  let wasAsked = false
  const over = new AbortController()
  const waits = createUserWaits()
  const ended = () => ({ at: currentTime(), waited: waits.total() })
  const ctx = createToolContext(prepared, step, {
    limit,
    waits,
    announce,
    wasAsked: () => wasAsked,
    signal: AbortSignal.any([limit.signal, over.signal]),
    onProgress(update) {
      if (state.status !== "running") return
      state = progress(state, hide(update))
      progressing.push()
    },
    async onAllowed() {
      if (state.status !== "running" || !state.harmless || onlyReads(tool)) return
      state = act(state)
      await report(state)
    },
  })
  ctx.call = callTools

  try {
    assertNotHandedOver(step)
    await askAboutLoop(prepared, past, step, { signal: run.signal, announce })
    await askForThirdParty(prepared, step, {
      signal: run.signal,
      announce() {
        wasAsked = true
        return announce()
      },
    })
    throwIfAborted(run.signal)
    const harmless = onlyReads(tool) || asksFirst(tool)
    state = start(prepared.state, prepared.state.input, currentTime(), { harmless })
    if (prepared.repaired !== undefined)
      state = progress(state, { metadata: { repaired: prepared.repaired } })
    await report(state)
    throwIfAborted(run.signal)

    limit.start()
    const work = containUntilExit(() => executeValidated(tool, prepared.args, ctx, runOptions(step)), {
      onEscape: (error) => engine.onEscape(tool.id, error),
      isBuiltin: tool.source.kind === "builtin",
    })
    const result = hide(await settleOrAbort(work, limit.signal))
    if (polls(prepared)) prepared.past.result = result.output
    if (result.handover && tool.source.kind === "builtin") step.turn.handover = result.handover
    limit.end()
    const metadata = { ...state.metadata, ...result.metadata }
    const end = await endOf(prepared, step, { ...result, metadata }, "completed")
    last = complete(state, { ...result, ...truncateChanged(end, result, ctx, step) }, ended())
  } catch (error) {
    // The store failed, not the tool. No other state could be stored either.
    if (unstored) throw unstored.error
    const settled = settleFailure(error, { callID: call.callID, tool: tool.id, turn: step.turn, state })
    const failure = hide(truncateFailure(settled, ctx, step))
    const { error: text, metadata } = failure
    const end = await endOf(prepared, step, { title: tool.id, output: text, metadata }, "error")
    // Plugins can add to the metadata of a failure but cannot change its kind.
    last = fail(state, { error: end.output, metadata: { ...end.metadata, ...metadata } }, ended())
  } finally {
    progressing.stop()
    limit.end()
    over.abort(callOver)
  }
  await report(last)
  return { callID: call.callID, state: last }
}

/**
 * Passes the title, output and metadata of a finished call to the plugins. Returns these fields as the plugins changed
 * them, with secrets hidden. Never rejects.
 */
async function endOf(
  { call, tool, state }: PreparedCall,
  { active: { run } }: Step,
  { title, output, metadata }: CallEnd,
  status: "completed" | "error",
): Promise<CallEnd> {
  const { engine, session, signal } = run
  const about = { tool: tool.id, sessionID: session.id, callID: call.callID, args: state.input, status }
  const end = await hooksAfter(engine.plugins, about, { title, output, metadata }, signal)
  return engine.mask.value(end)
}

/** Applies the output limits again to an output that plugins changed. */
function truncateChanged(end: CallEnd, result: CallEnd, ctx: ToolContext, step: Step): CallEnd {
  if (end.output === result.output) return end
  const cut = truncateText(end.output, ctx, step)
  return { ...end, output: cut.output, metadata: { ...end.metadata, ...cut.metadata } }
}

/** Applies the output limits to the error text of a failed call. */
function truncateFailure(
  failure: ReturnType<typeof settleFailure>,
  ctx: ToolContext,
  step: Step,
): ReturnType<typeof settleFailure> {
  const { output, metadata } = truncateText(failure.error, ctx, step)
  return metadata.truncated ? { error: output, metadata: { ...metadata, ...failure.metadata } } : failure
}

function truncateText(text: string, { spill }: ToolContext, step: Step) {
  const { limits, canDelegate = false } = runOptions(step)
  return truncateOutput(text, { limits: { ...defaultLimits, ...limits }, spill, canDelegate })
}

/** Returns true for a built-in tool that declares read access. Declarations of other tools are not trusted. */
function onlyReads({ definition, source }: PreparedCall["tool"]): boolean {
  return source.kind === "builtin" && definition.access === "read"
}

function asksFirst({ definition, source }: PreparedCall["tool"]): boolean {
  return source.kind === "builtin" && definition.asksFirst === true
}

function runOptions({ active, offered }: Step): RunOptions {
  return { limits: active.run.engine.outputLimits, canDelegate: offered.has("task") }
}

/** Throws if a call has handed the session over to another agent, because different rules apply to that agent. */
function assertNotHandedOver({ turn: { handover } }: Step): void {
  if (!handover) return
  throw new TackleError(
    `This call was not run, because the session was handed over to the agent ${handover.agent}. Repeat the call if it is still needed.`,
    { code: "call.handed-over", recoverable: true },
  )
}

/**
 * Returns the result of `work`. If the signal aborts first, waits until `work` or the grace period ends, and then
 * throws `TimeoutError` if the time limit expired, and otherwise `AbortedError`.
 */
async function settleOrAbort<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  try {
    return await orAbort(work, signal)
  } catch (error) {
    if (!signal.aborted) throw error
    const { promise: grace, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, abortGraceMs)
    // The call counts as aborted, even if the work ends successfully.
    const settled = () => resolve()
    await Promise.race([work.then(settled, settled), grace])
    clearTimeout(timer)
    throw error instanceof TimeoutError ? error : new AbortedError(undefined, error)
  }
}

/**
 * Creates a throttle that calls `run` after {@link firstProgressMs} on the first push, then at most once per interval,
 * and never after `stop`.
 */
function createThrottle(intervalMs: number, run: () => void) {
  let waiting = false
  let timer: NodeJS.Timeout | undefined
  let stopped = false
  let hasRun = false

  function fire(): void {
    timer = undefined
    if (!waiting || stopped) return
    waiting = false
    hasRun = true
    timer = setTimeout(fire, intervalMs)
    timer.unref()
    run()
  }

  return {
    push(): void {
      waiting = true
      if (hasRun && !timer) fire()
      else timer ??= setTimeout(fire, firstProgressMs).unref()
    },
    stop(): void {
      stopped = true
      clearTimeout(timer)
    },
  }
}

/** The fields of a finished call that plugins can change. */
interface CallEnd {
  title: string
  output: string
  metadata: Record<string, unknown>
}

/** Maximum wait for `tool.execute.after` hooks after an abort, in milliseconds. */
const abortedWaitMs = 1_000

/**
 * Passes the title, output and metadata of a finished call to the plugins, and returns these fields as the plugins
 * changed them. After an abort, returns the fields unchanged if the plugins do not respond within {@link
 * abortedWaitMs}.
 */
async function hooksAfter(
  plugins: PluginHost | undefined,
  input: HookedCall & { args: Record<string, unknown>; status: "completed" | "error" },
  end: CallEnd,
  signal: AbortSignal,
): Promise<CallEnd> {
  if (!plugins?.has("tool.execute.after")) return end
  const hooked = plugins.run("tool.execute.after", { input, output: end })
  const done = await orAbort(hooked, signal).catch(() => within(hooked, abortedWaitMs))
  return done ? { ...done.output, metadata: plainRecord(done.output.metadata) } : end
}

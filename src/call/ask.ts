import { detectLoop } from "../permission/doom-loop.ts"
import { PermissionError } from "../permission/errors.ts"
import type { CallReference } from "../schema/permission.ts"
import type { AskRequest } from "../tool/context.ts"
import { canonicalJson, isRecord } from "../util/json.ts"
import type { Call, PastCall } from "./call.ts"
import { LoopRefusedError } from "./call-failure.ts"
import type { Step } from "./context.ts"
import type { PreparedCall } from "./prepare.ts"

/** How a request waits for its reply. */
export interface AskOptions {
  /** Withdraws the request when it fires. */
  signal: AbortSignal
  /** Runs before the user is asked, so that the call is visible by then. */
  announce?: (() => Promise<void>) | undefined
}

/** Requests permission for a call. Throws `PermissionError`, or the signal's reason. */
export function ask(
  request: AskRequest,
  { call }: PreparedCall,
  step: Step,
  { signal, announce }: AskOptions,
): Promise<void> {
  const { scope, run } = step.active
  const asked = { ...request, sessionID: run.session.id, tool: referenceTo(call, step) }
  return run.engine.permission.ask(asked, scope, signal, announce)
}

/** Asks before the same call runs again and again. Throws `LoopRefusedError` if the user refuses. */
export async function askAboutLoop(
  prepared: PreparedCall,
  past: readonly PastCall[],
  step: Step,
  options: AskOptions,
): Promise<void> {
  const loop = detectLoop(past, prepared.past)
  if (!loop) return
  const { tool, state } = prepared
  const metadata = { tool: tool.id, input: state.input, ...loop }
  try {
    await ask({ permission: "doom_loop", patterns: [tool.id], metadata }, prepared, step, options)
  } catch (error) {
    if (!(error instanceof PermissionError)) throw error
    throw new LoopRefusedError(tool.id, loop.count, error)
  }
}

/**
 * Asks before a tool of a third party runs, whether it asks by itself or not. Throws `PermissionError`, and `TypeError`
 * for a tool whose own `ask` returns anything other than patterns.
 */
export async function askForThirdParty(
  prepared: PreparedCall,
  step: Step,
  options: AskOptions,
): Promise<void> {
  const { tool, args, state } = prepared
  if (tool.source.kind === "builtin") return
  const named = tool.definition.ask
    ? namedPatterns(tool.id, tool.definition.ask(args))
    : { patterns: [canonicalJson(state.input)] }
  const metadata = { tool: tool.id, input: state.input }
  await ask({ permission: tool.id, ...named, metadata }, prepared, step, options)
}

/** Returns how requests and questions name a call. */
export function referenceTo({ callID }: Call, { messageID, active }: Step): CallReference {
  return { messageID, callID, parent: active.run.caller }
}

/** Checks what a tool's own `ask` returns. It names patterns only; the permission stays the tool's id. */
function namedPatterns(tool: string, named: unknown): { patterns: string[]; always?: string[] } {
  const { patterns, always } = isRecord(named) ? named : {}
  if (!isTexts(patterns) || (always !== undefined && !isTexts(always))) {
    throw new TypeError(
      `The ask of the ${tool} tool must return { patterns: string[], always?: string[] }. This is a defect of the tool, not of the call.`,
    )
  }
  return { patterns, always }
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((entry) => typeof entry === "string")
}

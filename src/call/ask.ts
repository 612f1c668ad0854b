import { PermissionError } from "../permission/errors.ts"
import type { PermissionAsk } from "../permission/request.ts"
import type { CallReference } from "../schema/permission.ts"
import type { AskRequest } from "../tool/context.ts"
import { canonicalJson, isRecord } from "../util/json.ts"
import { LoopRefusedError } from "./call-failure.ts"
import type { Call, PastCall, Step } from "./context.ts"
import { detectLoop } from "./doom-loop.ts"
import type { PreparedCall } from "./prepare.ts"

/** Options for waiting for the reply to a request. */
export interface AskOptions {
  /** Signal that withdraws the request when aborted. */
  signal: AbortSignal
  /** Called before the user is asked, so that the user can already see the call. */
  announce?: (() => Promise<void>) | undefined
}

/**
 * Requests permission for a call. Throws `PermissionError` if permission is refused, and the signal's reason if the
 * signal aborts.
 */
export function ask(
  request: AskRequest & Pick<PermissionAsk, "alias" | "confined">,
  { call }: PreparedCall,
  step: Step,
  { signal, announce }: AskOptions,
): Promise<void> {
  const { scope, run } = step.active
  const asked = { ...request, sessionID: run.session.id, tool: referenceTo(call, step) }
  return run.engine.permission.ask(asked, scope, signal, announce)
}

/**
 * Asks for permission if a call repeats earlier calls without progress. Throws `LoopRefusedError` if permission is
 * refused.
 */
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
    throw new LoopRefusedError(tool.id, loop, error)
  }
}

/**
 * Requests permission before a third-party tool runs, even if the tool also requests permission itself. Rules can use
 * the tool's id and the name that its author gave it. Throws `PermissionError` if permission is refused, and
 * `TypeError` if the tool's `ask` function does not return patterns.
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
    : { patterns: [canonicalJson(state.input)], always: ["*"] }
  const alias = step.active.run.engine.registry.aliasOf(tool.id)
  const metadata = { tool: tool.id, input: state.input }
  await ask({ permission: tool.id, alias, ...named, metadata }, prepared, step, options)
}

/** Returns the reference that identifies a call in permission requests and questions. */
export function referenceTo({ callID }: Call, { messageID, active }: Step): CallReference {
  return { messageID, callID, parent: active.run.caller }
}

/**
 * Validates the result of a tool's `ask` function. The function can return only patterns, because the permission is
 * always the tool's id.
 */
function namedPatterns(tool: string, named: unknown): { patterns: string[]; always?: string[] } {
  const { patterns, always } = isRecord(named) ? named : {}
  if (!isTexts(patterns) || (always !== undefined && !isTexts(always))) {
    throw new TypeError(
      `The \`ask\` function of the ${tool} tool must return { patterns: string[], always?: string[] }. This is a bug in the tool, not in the call.`,
    )
  }
  return { patterns, always }
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((entry) => typeof entry === "string")
}

import { detectLoop } from "../permission/doom-loop.ts"
import { PermissionError } from "../permission/errors.ts"
import type { CallReference } from "../schema/permission.ts"
import type { AskRequest } from "../tool/context.ts"
import { canonicalJson, isRecord } from "../util/json.ts"
import type { Call, CallHost, PastCall } from "./call.ts"
import type { PreparedCall } from "./prepare.ts"
import { LoopRefusedError } from "./settle.ts"

/**
 * The same call again and again is a question to the person before it is an action. Throws `LoopRefusedError` where
 * going on is refused.
 */
export async function askLoop(
  prepared: PreparedCall,
  past: readonly PastCall[],
  host: CallHost,
): Promise<void> {
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

/**
 * Tools that are not ours are asked for before they run, whether they ask by themselves or not. Throws `PermissionError`,
 * and `TypeError` for a tool whose own `ask` does not say what for.
 */
export async function askForThirdParty(prepared: PreparedCall, host: CallHost): Promise<void> {
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
      `The ask of the ${tool} tool must return { patterns: string[], always?: string[] }. This is a bug in the tool, not in the call.`,
    )
  }
  return always === undefined ? { patterns } : { patterns, always }
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((entry) => typeof entry === "string")
}

/** Asks for leave in the name of a call, which is announced by then. Throws `PermissionError`, and the signal's reason. */
export function ask(
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

/** A call as requests and questions name it. */
export function referenceTo({ callID }: Call, { messageID, parent }: CallHost): CallReference {
  return { messageID, callID, ...(parent ? { parent } : {}) }
}

import type { Refusal } from "../event/events.ts"
import { PermissionError } from "../permission/errors.ts"
import { describeEffect, fail, pending } from "../schema/tool-moves.ts"
import type { ToolStatePending, ToolStateRunning } from "../schema/tool-state.ts"
import { AbortedError, TimeoutError } from "../util/abort.ts"
import { errorMessage, TackleError } from "../util/errors.ts"
import { currentTime } from "../util/time.ts"
import type { Call, CallOutcome, Turn } from "./context.ts"
import type { Loop } from "./doom-loop.ts"

/** Thrown when permission to repeat a call is refused. */
export class LoopRefusedError extends TackleError {
  readonly refusal: PermissionError | undefined
  constructor(tool: string, { count, period }: Loop, cause: unknown) {
    const repeated = period === 1 ? "call was" : `${period} calls were`
    super(
      `This ${tool} call was not run, because the same ${repeated} made ${count} times in a row. ` +
        "Do not repeat this call. Try a different approach, or tell the user what you need to continue.",
      { code: "call.loop", recoverable: true, cause },
    )
    this.refusal = cause instanceof PermissionError ? cause : undefined
  }
}

/** The reason why a call ended as an error, stored in `metadata.kind`. */
export type FailureKind = "refused" | "loop" | "aborted" | "timeout" | "failed"

/**
 * Returns the error text and the metadata for the last state of a failed call. The text is for the model, and
 * `metadata.kind` is for programs. For an interrupted call, the text says whether the call may have had effects. If the
 * call was refused, adds the refusal to the turn.
 */
export function settleFailure(
  error: unknown,
  { callID, tool, turn, state }: FailedCall,
): { error: string; metadata: Record<string, unknown> } {
  const kind = kindOf(error)
  const refusal = error instanceof LoopRefusedError ? error.refusal : error
  if (refusal instanceof PermissionError) {
    turn.refused.push(describeRefusal(refusal, { callID, tool }))
    if (kind === "loop") turn.loopRefusals += 1
  }
  const cutOff = kind === "aborted" || kind === "timeout"
  const text = cutOff ? `${errorMessage(error)} ${describeEffect(state)}` : errorMessage(error)
  return { error: text, metadata: { kind } }
}

/** Returns the outcome of a call that ended before its tool was found. */
export function settleUnstarted({ callID, tool, raw }: Call, error: unknown, turn: Turn): CallOutcome {
  const state = pending(raw)
  return { callID, state: fail(state, settleFailure(error, { callID, tool, turn, state }), currentTime()) }
}

/** A failed call. `state` is its last state before the failure. */
interface FailedCall {
  callID: string
  tool: string
  turn: Turn
  state: ToolStatePending | ToolStateRunning
}

function kindOf(error: unknown): FailureKind {
  if (error instanceof LoopRefusedError) return "loop"
  if (error instanceof PermissionError) return "refused"
  if (error instanceof TimeoutError) return "timeout"
  if (error instanceof AbortedError) return "aborted"
  return "failed"
}

function describeRefusal(error: PermissionError, call: { callID: string; tool: string }): Refusal {
  const { permission, patterns, by, rules, message } = error
  return { ...call, permission, patterns: [...patterns], by, rules: [...rules], reason: message }
}

import type { Refusal } from "../event/events.ts"
import type { ToolStateCompleted, ToolStateError } from "../schema/tool-state.ts"
import type { Handover } from "../tool/tool.ts"

/** A call as the model made it. */
export interface Call {
  callID: string
  /** Name of the tool as the model wrote it. The tool may not exist. */
  tool: string
  /** Arguments as the model wrote them. They may be invalid JSON. */
  raw: string
  /** Whether the output limit cut the answer off inside this call. */
  cut?: boolean
  /** Describes the repairs made when the call was read from text. */
  repaired?: string
}

/** The outcome of a call. `state` is the last state that was reported for the call. */
export interface CallOutcome {
  callID: string
  state: ToolStateCompleted | ToolStateError
}

/** An earlier call in the turn, as the loop detector sees it. `result` is the output of a call that polls. */
export interface PastCall {
  tool: string
  input: string
  result?: string | undefined
}

/** State that all calls of one prompt share. */
export interface Turn {
  past: PastCall[]
  refused: Refusal[]
  /** Number of calls that were refused because they repeat earlier calls. The third such call ends the run. */
  loopRefusals: number
  /** The agent that takes over the session. If a call sets it, no later call in the step runs. */
  handover?: Handover
}

/** Returns an empty turn. */
export function newTurn(): Turn {
  return { past: [], refused: [], loopRefusals: 0 }
}

/** Returns the recorded result of a call. */
export type RecordedResults = (call: {
  tool: string
  input: Readonly<Record<string, unknown>>
}) => CallOutcome["state"]

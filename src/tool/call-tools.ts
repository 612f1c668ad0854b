import type { ToolStateCompleted, ToolStateError } from "../schema/tool-state.ts"

/**
 * Calls other tools as the model would: each call is checked, asked for, ordered and recorded by itself. Results come
 * in the order of the calls, failed ones among them. The tools called cannot call further.
 */
export type CallTools = (
  calls: readonly { tool: string; input: Record<string, unknown> }[],
) => Promise<CallResult[]>

/** What became of a call that a tool made. */
export interface CallResult {
  callID: string
  tool: string
  state: ToolStateCompleted | ToolStateError
}

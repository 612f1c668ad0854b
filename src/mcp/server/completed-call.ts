import { ProtocolError, ProtocolErrorCode } from "@modelcontextprotocol/server"
import type { ToolStateCompleted } from "../../schema/tool-state.ts"
import type { ClientCalls } from "./client-calls.ts"

/** What a refusal says beside its own words where the client has no forms. */
export const nobodyToAsk =
  "This MCP client cannot show forms (elicitation), so nobody could be asked. A rule in Tackle's configuration, or --allow where the server is started, decides without asking."

/** What a call came to, for requests that are no calls of tools. Throws `ProtocolError` with the reason where it failed. */
export function completedOf({ state, unasked }: Awaited<ReturnType<ClientCalls["run"]>>): ToolStateCompleted {
  if (state.status === "completed") return state
  const why = unasked ? `${state.error} ${nobodyToAsk}` : state.error
  throw new ProtocolError(ProtocolErrorCode.InvalidParams, why)
}

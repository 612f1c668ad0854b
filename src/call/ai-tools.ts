import type { ToolSet } from "ai"
import type { ToolListing } from "../registry/registry.ts"
import type { CallOutcome } from "./call.ts"

/** The methods of an engine that {@link toAiTools} needs. The object that `createTackle` returns has them. */
export interface AiToolSource {
  tools(scope?: { agent?: string; model?: string }): Promise<ToolListing[]>
  callTool(call: { tool: string; input: string; agent?: string; signal?: AbortSignal }): Promise<CallOutcome>
}

/**
 * Returns the engine's tools for applications that use the loop of the AI SDK (`streamText`, `generateText`). Every
 * call goes through the engine, which checks arguments and permissions and limits the output. A failed call throws with
 * the text for the model. Calls are not recorded, and every file counts as read in its current state. Requires the
 * package `ai`.
 */
export async function toAiTools(
  engine: AiToolSource,
  options: { agent?: string; model?: string } = {},
): Promise<ToolSet> {
  const { jsonSchema, tool } = await import("ai")
  const offered = (await engine.tools(options)).filter((entry) => entry.offered)
  const agent = options.agent === undefined ? {} : { agent: options.agent }
  return Object.fromEntries(
    offered.map(({ id, description, parameters }) => [
      id,
      tool({
        description,
        inputSchema: jsonSchema(parameters),
        async execute(input: unknown, { abortSignal }): Promise<string> {
          const call = { tool: id, input: JSON.stringify(input), ...agent }
          const { state } = await engine.callTool(abortSignal ? { ...call, signal: abortSignal } : call)
          if (state.status === "error") throw new Error(state.error)
          return state.output
        },
      }),
    ]),
  )
}

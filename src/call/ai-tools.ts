import type { ToolSet } from "ai"
import type { ToolListing } from "../registry/registry.ts"
import type { CallOutcome } from "./call.ts"

/** The part of an engine that is needed here; what `createTackle` returns has it. */
export interface AiToolSource {
  tools(scope?: { agent?: string; model?: string }): Promise<ToolListing[]>
  callTool(call: { tool: string; input: string; agent?: string; signal?: AbortSignal }): Promise<CallOutcome>
}

/**
 * The engine's tools for the AI SDK's own loop (`streamText`, `generateText`), for applications that keep it. Every
 * call goes through the engine: arguments are checked, permission is decided, output is bounded. A failed call throws
 * with the text for the model. Nothing is recorded, and files count as read as they are at the call. Needs the
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

// biome-ignore lint/suspicious/noTsIgnore: the declaration must also compile where the optional package is missing
/** @ts-ignore */
import type { ToolSet } from "ai"
import { readDataUrl } from "../model/convert-file.ts"
import type { ToolListing } from "../registry/registry.ts"
import type { Attachment } from "../schema/tool-state.ts"
import type { CallOutcome } from "./context.ts"

/** The engine methods that {@link toAiTools} needs. Pass the object that `createTackle` returns. */
export interface AiToolSource {
  tools(scope?: { agent?: string; model?: string }): Promise<ToolListing[]>
  callTool(call: { tool: string; input: string; agent?: string; signal?: AbortSignal }): Promise<CallOutcome>
}

/** Result of a call that returns files. */
export interface AiToolOutput {
  /** The text for the model. */
  output: string
  attachments: Attachment[]
}

/**
 * Returns the engine's tools for applications that use the loop of the AI SDK (`streamText`, `generateText`). Every
 * call goes through the engine, which checks arguments and permissions and limits the output. If a call fails, its tool
 * throws an `Error` whose message is the text for the model. A call that returns files returns an {@link AiToolOutput},
 * and the model receives the files as content parts; any other call returns its text. Calls are not recorded, and every
 * file counts as already read in its current state. Requires the `ai` package.
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
        async execute(input: unknown, { abortSignal }): Promise<string | AiToolOutput> {
          const call = { tool: id, input: JSON.stringify(input), ...agent }
          const { state } = await engine.callTool(abortSignal ? { ...call, signal: abortSignal } : call)
          if (state.status === "error") throw new Error(state.error)
          const { output, attachments = [] } = state
          return attachments.length === 0 ? output : { output, attachments }
        },
        toModelOutput: ({ output }) =>
          typeof output === "string"
            ? { type: "text", value: output }
            : { type: "content", value: contentParts(output) },
      }),
    ]),
  )
}

/**
 * Returns the text and the files. A file without a data URL is replaced by its name or URL, because the provider cannot
 * read files on this machine.
 */
function contentParts({ output, attachments }: AiToolOutput) {
  return [{ type: "text" as const, text: output }, ...attachments.map(contentPart)]
}

function contentPart({ mime, url, filename }: Attachment) {
  const data = readDataUrl(url)
  return data === undefined
    ? { type: "text" as const, text: `[File: ${filename ?? url} (${mime})]` }
    : { type: "file" as const, data: { type: "data" as const, data }, mediaType: mime, filename }
}

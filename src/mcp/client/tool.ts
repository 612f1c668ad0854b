import type { CallToolResult, Progress, Tool } from "@modelcontextprotocol/client"
import * as z from "zod"
import { define, type Info } from "../../tool/tool.ts"
import { orAbort } from "../../util/abort.ts"
import { canonicalJson } from "../../util/json.ts"
import type { McpCall } from "./calls-under-way.ts"
import { elicit } from "./elicitation.ts"
import { McpCallError } from "./errors.ts"
import { toToolResult } from "./result.ts"
import { sampler } from "./sampling.ts"
import { mcpToolID } from "./tool-id.ts"

/** Any object: the server checks its arguments by the schema that it sent. */
const anyArguments = z.looseObject({})

/** A server's tool as one of ours. `call` goes to the server. What the tool says of its own harmlessness is not heard. */
export function fromMcpTool(
  server: string,
  tool: Tool,
  call: (call: McpCall) => Promise<CallToolResult>,
): Info {
  const title = `${server}: ${tool.title ?? tool.annotations?.title ?? tool.name}`
  return define(mcpToolID(server, tool.name), {
    description: tool.description?.trim() || `The tool ${tool.name} of the MCP server ${server}.`,
    parameters: anyArguments,
    jsonSchema: tool.inputSchema,
    ask: (args) => ({ patterns: [canonicalJson(args)], always: ["*"] }),
    async execute(args, ctx) {
      const result = await call({
        name: tool.name,
        args,
        signal: ctx.abort,
        onProgress: (progress) => void ctx.metadata(describeProgress(progress)),
        sessionID: ctx.sessionID,
        answers: {
          elicit: (form, signal) => orAbort(elicit(server, form, ctx, signal), signal),
          sample: sampler(server, ctx),
        },
      })
      const ours = toToolResult(title, result)
      if (result.isError) throw new McpCallError(ours.output)
      return ours
    },
  })
}

function describeProgress({ progress, total, message }: Progress) {
  return {
    ...(message === undefined ? {} : { title: message }),
    progress: { done: progress, ...(total === undefined ? {} : { total }) },
  }
}

import { createHash } from "node:crypto"
import type { CallToolResult, Progress, Tool } from "@modelcontextprotocol/client"
import * as z from "zod"
import { define, type Info } from "../../tool/tool.ts"
import { orAbort } from "../../util/abort.ts"
import { canonicalJson } from "../../util/json.ts"
import { toToolResult } from "./content.ts"
import { elicit } from "./elicitation.ts"
import { McpCallError } from "./errors.ts"
import type { McpCall } from "./pending-calls.ts"
import { sampler } from "./server-requests.ts"

/** Accepts any arguments, because the server validates them against its own schema. */
const anyArguments = z.looseObject({})

/**
 * Wraps a server's tool. `call` sends the call to the server. Ignores the safety annotations that the server declares.
 */
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
        asTask: tool.execution?.taskSupport === "required",
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

/** Maximum length of a tool id that providers accept. */
const maxID = 64

/**
 * Returns the id of a server's tool, `<server>_<tool>`, which permission rules match. Replaces each character other
 * than letters, digits, `_` and `-` with `_`. An id of more than 64 characters is cut and ends in a hash that keeps it
 * unique.
 */
export function mcpToolID(server: string, tool: string): string {
  const id = `${server}_${tool}`.replaceAll(/[^A-Za-z0-9_-]/g, "_")
  if (id.length <= maxID) return id
  const hash = createHash("sha256").update(`${server}\n${tool}`).digest("hex").slice(0, 8)
  return `${id.slice(0, maxID - hash.length - 1)}_${hash}`
}

function describeProgress({ progress, total, message }: Progress) {
  return { title: message, progress: { done: progress, total } }
}

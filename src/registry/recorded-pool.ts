import * as z from "zod"
import { McpServerError } from "../mcp/client/errors.ts"
import type { McpPool, PooledTool } from "../mcp/client/pool.ts"
import { define } from "../tool/tool.ts"
import { toJsonSchema } from "../util/json-schema.ts"

/** A tool from an MCP server, as described to a model. */
export interface DescribedTool {
  server: string
  id: string
  description: string
  /** JSON Schema of its arguments. */
  schema: Record<string, unknown>
}

/** Wraps a pool and passes its tools to `write` at the first listing and at each later listing that is different. */
export function describedPool(pool: McpPool, write: (tools: DescribedTool[]) => void): McpPool {
  let known = ""
  return {
    ...pool,
    async tools() {
      const tools = await pool.tools()
      const described = await Promise.all(tools.map(describe))
      const text = JSON.stringify(described)
      if (text !== known) write(described)
      known = text
      return tools
    },
  }
}

/** Creates a pool with recorded tools. The pool starts no servers, and every tool call fails. */
export function recordedPool(tools: () => readonly DescribedTool[]): McpPool {
  const absent = (server: string) => new McpServerError(server, "this run is replayed without MCP servers.")
  return {
    tools: async () => tools().map((tool) => fromDescription(tool, absent)),
    status: async () => [],
    prompts: async () => [],
    async prompt({ server }) {
      throw absent(server)
    },
    resources: async () => [],
    async readResource({ server }) {
      throw absent(server)
    },
    async watchResource({ server }) {
      throw absent(server)
    },
    async close() {},
  }
}

async function describe({ server, tool }: PooledTool): Promise<DescribedTool> {
  const { description, parameters, jsonSchema } = await tool.init()
  return { server, id: tool.id, description, schema: { ...(jsonSchema ?? toJsonSchema(parameters)) } }
}

function fromDescription(
  { server, id, description, schema }: DescribedTool,
  absent: (server: string) => Error,
): PooledTool {
  const tool = define(id, {
    description,
    parameters: z.looseObject({}),
    jsonSchema: schema,
    async execute() {
      throw absent(server)
    },
  })
  return { server, tool }
}

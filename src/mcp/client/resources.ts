import type { ReadResourceResult } from "@modelcontextprotocol/client"
import * as z from "zod"
import { define, type Info } from "../../tool/tool.ts"
import { isRecord } from "../../util/json.ts"
import { toToolResult } from "./result.ts"
import type { ResourceList } from "./server.ts"

/** The id of the tool that reads a resource. */
export const readResourceID = "mcp_read_resource"

/** What a resource holds: texts, and bytes as base64. */
export type McpContents = ReadResourceResult["contents"]

/** What servers have to read. */
export interface ResourceSource {
  /** Ids of the servers. At least one. */
  servers: readonly [string, ...string[]]
  list(server: string, signal: AbortSignal): Promise<ResourceList>
  read(server: string, uri: string, signal: AbortSignal): Promise<ReadResourceResult>
}

/** The two tools by which a model finds and reads what servers have. They ask under their ids. */
export function resourceTools(source: ResourceSource): Info[] {
  const server = z.enum(source.servers).describe("Id of the MCP server")
  const list = define("mcp_list_resources", {
    description:
      "Lists the resources of an MCP server: its documents, records and files, each with the URI by which mcp_read_resource reads it. URIs with {names} in them are templates to fill in.",
    parameters: z.object({ server }),
    ask: (args) => ({ patterns: [args.server], always: [args.server] }),
    async execute({ server: id }, ctx) {
      const lines = describeList(await source.list(id, ctx.abort))
      return {
        title: `${id}: ${lines.length} resources`,
        output: lines.join("\n") || `The MCP server ${id} has no resources now.`,
      }
    },
  })
  const read = define(readResourceID, {
    description: "Reads a resource of an MCP server by its URI, as mcp_list_resources or a result names it.",
    parameters: z.object({ server, uri: z.string().min(1).describe("URI of the resource, whole") }),
    ask: ({ server: id, uri }) => ({ patterns: [`${id}:${uri}`], always: [`${id}:*`] }),
    async execute({ server: id, uri }, ctx) {
      const { contents } = await source.read(id, uri, ctx.abort)
      const content = contents.map((resource) => ({ type: "resource", resource }) as const)
      return toToolResult(`${id}: ${uri}`, { content })
    },
  })
  return [list, read]
}

/** The servers that {@link readResourceID} reads from, by the schema under which it is offered. */
export function resourceServers(schema: Readonly<Record<string, unknown>> | undefined): string[] {
  const properties = schema?.properties
  const server = isRecord(properties) ? properties.server : undefined
  const servers = isRecord(server) && Array.isArray(server.enum) ? server.enum : []
  return servers.filter((id) => typeof id === "string")
}

function describeList({ resources, templates }: ResourceList): string[] {
  return [
    ...resources.map(({ uri, ...about }) => describe(uri, about)),
    ...templates.map(({ uriTemplate, ...about }) => describe(uriTemplate, about)),
  ]
}

function describe(
  uri: string,
  about: {
    name: string
    title?: string | undefined
    mimeType?: string | undefined
    description?: string | undefined
  },
): string {
  const words = [about.title ?? about.name, about.mimeType, about.description].filter(Boolean).join(" - ")
  return `${uri}: ${words.replaceAll(/\s+/g, " ")}`
}

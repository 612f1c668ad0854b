import type { ReadResourceResult } from "@modelcontextprotocol/client"
import * as z from "zod"
import { define, type Info } from "../../tool/tool.ts"
import { isRecord } from "../../util/json.ts"
import { counted } from "../../util/words.ts"
import type { ResourceList } from "./connection.ts"
import { toToolResult } from "./content.ts"

/** Id of the tool that reads a resource. */
export const readResourceID = "mcp_read_resource"

/** The contents of a resource: text, or binary data as base64. */
export type McpContents = ReadResourceResult["contents"]

/** Reads resources from servers. */
export interface ResourceReader {
  /** Ids of the servers. At least one. */
  servers: readonly [string, ...string[]]
  list(server: string, signal: AbortSignal): Promise<ResourceList>
  read(server: string, uri: string, signal: AbortSignal): Promise<ReadResourceResult>
}

/** Returns the tools that list and read resources. Each tool asks for permission under its own id. */
export function resourceTools(reader: ResourceReader): Info[] {
  const server = z.enum(reader.servers).describe("Id of the MCP server")
  const list = define("mcp_list_resources", {
    description:
      "Lists the resources of an MCP server, such as documents, records and files, with the URIs that mcp_read_resource accepts. A URI with placeholders such as {name} is a template: replace each placeholder with a value.",
    parameters: z.object({ server }),
    ask: (args) => ({ patterns: [args.server], always: [args.server] }),
    async execute({ server: id }, ctx) {
      const lines = describeList(await reader.list(id, ctx.abort))
      return {
        title: `${id}: ${counted(lines.length, "resource")}`,
        output: lines.join("\n") || `The MCP server ${id} currently has no resources.`,
      }
    },
  })
  const read = define(readResourceID, {
    description: "Reads a resource of an MCP server by a URI from mcp_list_resources or from a tool result.",
    parameters: z.object({ server, uri: z.string().min(1).describe("Full URI of the resource") }),
    ask: ({ server: id, uri }) => ({ patterns: [`${id}:${uri}`], always: [`${id}:*`] }),
    async execute({ server: id, uri }, ctx) {
      const { contents } = await reader.read(id, uri, ctx.abort)
      const content = contents.map((resource) => ({ type: "resource", resource }) as const)
      return toToolResult(`${id}: ${uri}`, { content })
    },
  })
  return [list, read]
}

/** Returns the servers that the schema of an offered {@link readResourceID} tool lists. */
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
  about: { name: string; title?: string; mimeType?: string; description?: string },
): string {
  const text = [about.title ?? about.name, about.mimeType, about.description].filter(Boolean).join(" - ")
  return `${uri}: ${text.replaceAll(/\s+/g, " ")}`
}

import { basename } from "node:path"
import {
  isSpecType,
  ProtocolError,
  ProtocolErrorCode,
  type ReadResourceResult,
  ResourceNotFoundError,
  type Server,
  type ServerContext,
  UriTemplate,
} from "@modelcontextprotocol/server"
import type { McpResources } from "../mcp/pool.ts"
import { readResourceID } from "../mcp/resources.ts"
import type { Tackle } from "../runtime/tackle.ts"
import type { ToolStateCompleted } from "../schema/tool-state.ts"
import type { ClientCalls } from "./client-calls.ts"
import { nobodyToAsk, type OfferedTools } from "./offered-tools.ts"
import { pathOfUri, readFileWhole, readServerResource, uriOfFile } from "./resource-tools.ts"

/** A resource by its address, and the server behind the engine that has it. */
export interface NamedResource {
  uri: string
  server?: string
}

/** What one client can read beside calling tools. */
export interface OfferedResources {
  /**
   * By the rules of the tool that reads such things. Without a server it is the first that has it. Throws `ProtocolError`
   * with the reason where there is nothing.
   */
  read(named: NamedResource, context: ServerContext): Promise<ReadResourceResult>
  /** Offers the file with the whole output of a call, where it was too long for the result. */
  noteOutput(tool: string, state: ToolStateCompleted): Promise<void>
}

/**
 * Answers `resources/…`: files of the project by their address, long outputs of the client's own calls, and whatever the
 * MCP servers behind the engine have. Each is there for clients that have the tool by which models read such things.
 */
export function offerResources(
  server: Server,
  { tackle, calls, tools }: { tackle: Tackle; calls: ClientCalls; tools: OfferedTools },
): OfferedResources {
  /** The tool that wrote each, by the file's path. */
  const outputs = new Map<string, string>()
  const throughServers = readServerResource(tackle)

  server.setRequestHandler("resources/list", async (_request, { mcpReq }) => {
    const files = (await tools.has("read", mcpReq.signal)) ? [...outputs] : []
    const own = files.map(([path, tool]) => ({
      uri: uriOfFile(path),
      name: basename(path),
      description: `The whole output of a call of ${tool}.`,
      mimeType: "text/plain",
    }))
    const ofServers = (await throughTool(mcpReq.signal)).flatMap(({ resources }) => resources)
    return { resources: [...own, ...ofServers] }
  })
  server.setRequestHandler("resources/templates/list", async (_request, { mcpReq }) => {
    const own = (await tools.has("read", mcpReq.signal)) ? [fileTemplate] : []
    const ofServers = (await throughTool(mcpReq.signal)).flatMap(({ templates }) => templates)
    return { resourceTemplates: [...own, ...ofServers] }
  })
  server.setRequestHandler("resources/read", ({ params: { uri } }, context) => read({ uri }, context))

  /** What the servers have, for a client that has the tool by which models read it. */
  async function throughTool(signal: AbortSignal): Promise<McpResources[]> {
    return (await tools.has(readResourceID, signal)) ? await tackle.mcpResources(signal) : []
  }

  async function read(named: NamedResource, context: ServerContext): Promise<ReadResourceResult> {
    const { uri } = named
    const call = await callFor(named, context.mcpReq.signal)
    const { state, unasked } = await calls.run(context, call)
    if (state.status === "error") {
      const why = unasked ? `${state.error} ${nobodyToAsk}` : state.error
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, why)
    }
    const result = { contents: state.metadata.contents }
    if (!isSpecType.ReadResourceResult(result)) throw new TypeError(`${uri} came as no resource.`)
    return result
  }

  async function callFor({ uri, server: named }: NamedResource, signal: AbortSignal) {
    if (named === undefined && uri.startsWith("file:")) {
      const input = { filePath: pathOfUri(uri) }
      if (await tools.has("read", signal)) return { tool: "read", input, by: readFileWhole }
      throw new ResourceNotFoundError(uri, "Files are not offered: the tool read is not.")
    }
    const servers = await throughTool(signal)
    const owner = servers.find(({ server: id }) => id === named)?.server ?? ownerOf(uri, servers)
    if (owner === undefined) throw new ResourceNotFoundError(uri, `There is no resource ${uri}.`)
    return { tool: readResourceID, input: { server: owner, uri }, by: throughServers }
  }

  return {
    read,
    async noteOutput(tool, { metadata: { outputPath } }) {
      if (typeof outputPath !== "string" || outputs.has(outputPath)) return
      outputs.set(outputPath, tool)
      await server.sendResourceListChanged()
    },
  }
}

const fileTemplate = {
  uriTemplate: "file://{+path}",
  name: "file",
  title: "File",
  description: "A file by its absolute path, as it is. The rules of the tool read hold.",
}

/** The first server that names the address, else the first whose pattern fits it. */
function ownerOf(uri: string, servers: readonly McpResources[]): string | undefined {
  const naming = servers.find(({ resources }) => resources.some((resource) => resource.uri === uri))
  return (naming ?? servers.find(({ templates }) => templates.some((each) => fits(uri, each.uriTemplate))))
    ?.server
}

function fits(uri: string, template: string): boolean {
  try {
    return new UriTemplate(template).match(uri) !== null
  } catch {
    // A pattern that is none fits nothing.
    return false
  }
}

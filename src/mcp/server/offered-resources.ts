import { basename } from "node:path"
import {
  isSpecType,
  type ReadResourceResult,
  type Server,
  type ServerContext,
} from "@modelcontextprotocol/server"
import type { Tackle } from "../../engine/tackle.ts"
import type { ToolStateCompleted } from "../../schema/tool-state.ts"
import type { McpResources } from "../client/pool.ts"
import { readResourceID } from "../client/resources.ts"
import type { ClientCall, ClientCalls } from "./client-calls.ts"
import { completedOf } from "./completed-call.ts"
import type { OfferedTools } from "./offered-tools.ts"
import { findSource, type NamedResource, type ResourceSource } from "./resource-source.ts"
import { readFileWhole, readServerResource, uriOfFile } from "./resource-tools.ts"

/** What one client can read beside calling tools. */
export interface OfferedResources {
  /**
   * By the rules of the tool that reads such things. Without a server it is the first that has it. Throws `ProtocolError`
   * with the reason where there is nothing.
   */
  read(named: NamedResource, context: ServerContext): Promise<ReadResourceResult>
  /** Where it is, if the client may read such things. Throws like `read`. */
  find(named: NamedResource, signal: AbortSignal): Promise<ResourceSource>
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
    const source = await find(named, context.mcpReq.signal)
    const state = completedOf(await calls.run(context, readingOf(source)))
    const result = { contents: state.metadata.contents }
    if (!isSpecType.ReadResourceResult(result)) throw new TypeError(`${uri} came as no resource.`)
    return result
  }

  function find(named: NamedResource, signal: AbortSignal): Promise<ResourceSource> {
    return findSource(named, {
      files: () => tools.has("read", signal),
      servers: () => throughTool(signal),
    })
  }

  function readingOf(source: ResourceSource): ClientCall {
    if (source.kind === "file") return { tool: "read", input: { filePath: source.path }, by: readFileWhole }
    return { tool: readResourceID, input: { server: source.server, uri: source.uri }, by: throughServers }
  }

  return {
    read,
    find,
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

import { basename } from "node:path"
import {
  isSpecType,
  type ReadResourceResult,
  ResourceNotFoundError,
  type Server,
  type ServerContext,
  UriTemplate,
} from "@modelcontextprotocol/server"
import type { Tackle } from "../../engine/tackle.ts"
import type { ToolStateCompleted } from "../../schema/tool-state.ts"
import type { McpResources } from "../client/pool.ts"
import { readResourceID } from "../client/resources.ts"
import { type ClientCall, type ClientCalls, completedOf } from "./client-calls.ts"
import { pathOfUri, readServerResource, readWholeFile, uriOfFile } from "./resource-tools.ts"
import type { OfferedTools } from "./tools.ts"

/** The URI of a resource and, if known, its upstream server. */
export interface NamedResource {
  uri: string
  server?: string
}

/** The source of a resource: the file system or an upstream server. */
export type ResourceSource = { kind: "file"; path: string } | { kind: "server"; server: string; uri: string }

/** The resources offered to one client. */
export interface OfferedResources {
  /**
   * Reads a resource under the rules of the tool that reads it. If `named` has no server, a `file:` URI identifies a
   * file, and any other URI identifies a resource on the first server that lists it or has a matching template. Throws
   * `ProtocolError` with the reason if the resource cannot be read.
   */
  read(named: NamedResource, context: ServerContext): Promise<ReadResourceResult>
  /** Finds the source of a resource. Throws `ProtocolError` if the resource is unknown or its tool is not offered. */
  find(named: NamedResource, signal: AbortSignal): Promise<ResourceSource>
  /** Offers the file with the full output of a call whose result was truncated. */
  noteOutput(tool: string, state: ToolStateCompleted): Promise<void>
}

/**
 * Handles `resources/…` requests. Offers files by URI, full outputs of the client's own calls, and resources from
 * upstream MCP servers. Each kind is offered only if the tool that reads it is offered.
 */
export function offerResources(
  server: Server,
  { tackle, calls, tools }: { tackle: Tackle; calls: ClientCalls; tools: OfferedTools },
): OfferedResources {
  /** Paths of output files, with the tool that wrote each file. */
  const outputs = new Map<string, string>()
  const throughServers = readServerResource(tackle)

  server.setRequestHandler("resources/list", async (_request, { mcpReq }) => {
    const files = (await tools.has("read", mcpReq.signal)) ? [...outputs] : []
    const own = files.map(([path, tool]) => ({
      uri: uriOfFile(path),
      name: basename(path),
      description: `The full output of a call to ${tool}.`,
      mimeType: "text/plain",
    }))
    const upstream = (await upstreamResources(mcpReq.signal)).flatMap(({ resources }) => resources)
    return { resources: [...own, ...upstream] }
  })
  server.setRequestHandler("resources/templates/list", async (_request, { mcpReq }) => {
    const own = (await tools.has("read", mcpReq.signal)) ? [fileTemplate] : []
    const upstream = (await upstreamResources(mcpReq.signal)).flatMap(({ templates }) => templates)
    return { resourceTemplates: [...own, ...upstream] }
  })
  server.setRequestHandler("resources/read", ({ params: { uri } }, context) => read({ uri }, context))

  async function upstreamResources(signal: AbortSignal): Promise<McpResources[]> {
    return (await tools.has(readResourceID, signal)) ? await tackle.mcpResources(signal) : []
  }

  async function read(named: NamedResource, context: ServerContext): Promise<ReadResourceResult> {
    const source = await find(named, context.mcpReq.signal)
    const state = completedOf(await calls.run(context, callFor(source)))
    const result = { contents: state.metadata.contents }
    if (!isSpecType.ReadResourceResult(result)) throw new TypeError(`${named.uri} is not a valid resource.`)
    return result
  }

  async function find({ uri, server: named }: NamedResource, signal: AbortSignal): Promise<ResourceSource> {
    if (named === undefined && uri.startsWith("file:")) {
      const path = pathOfUri(uri)
      if (await tools.has("read", signal)) return { kind: "file", path }
      throw new ResourceNotFoundError(uri, "Files are not available, because the read tool is not offered.")
    }
    const servers = await upstreamResources(signal)
    const id = servers.find(({ server }) => server === named)?.server ?? ownerOf(uri, servers)
    if (id === undefined) throw new ResourceNotFoundError(uri, `Unknown resource ${uri}.`)
    return { kind: "server", server: id, uri }
  }

  function callFor(source: ResourceSource): ClientCall {
    if (source.kind === "file") return { tool: "read", input: { filePath: source.path }, by: readWholeFile }
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
  description: "A file by its absolute path. The permission rules of the read tool apply.",
}

/** Returns the first server that lists the URI, or the first server with a matching template. */
function ownerOf(uri: string, servers: readonly McpResources[]): string | undefined {
  const listing = servers.find(({ resources }) => resources.some((resource) => resource.uri === uri))
  return (
    listing ?? servers.find(({ templates }) => templates.some((each) => matches(uri, each.uriTemplate)))
  )?.server
}

/** Returns true if the URI matches the template. An invalid template matches nothing. */
function matches(uri: string, template: string): boolean {
  try {
    return new UriTemplate(template).match(uri) !== null
  } catch {
    return false
  }
}

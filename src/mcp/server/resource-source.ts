import { ResourceNotFoundError, UriTemplate } from "@modelcontextprotocol/server"
import type { McpResources } from "../client/pool.ts"
import { pathOfUri } from "./resource-tools.ts"

/** A resource by its address, and the server behind the engine that has it. */
export interface NamedResource {
  uri: string
  server?: string
}

/** Who has a resource: the file system, or a server behind the engine. */
export type ResourceSource = { kind: "file"; path: string } | { kind: "server"; server: string; uri: string }

/**
 * Where a resource is, for a client that may read such things. Without a server it is the first that has it. Throws
 * `ProtocolError` where there is nothing.
 */
export async function findSource(
  { uri, server: named }: NamedResource,
  offered: { files(): Promise<boolean>; servers(): Promise<readonly McpResources[]> },
): Promise<ResourceSource> {
  if (named === undefined && uri.startsWith("file:")) {
    const path = pathOfUri(uri)
    if (await offered.files()) return { kind: "file", path }
    throw new ResourceNotFoundError(uri, "Files are not offered: the tool read is not.")
  }
  const servers = await offered.servers()
  const server = servers.find(({ server: id }) => id === named)?.server ?? ownerOf(uri, servers)
  if (server === undefined) throw new ResourceNotFoundError(uri, `There is no resource ${uri}.`)
  return { kind: "server", server, uri }
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

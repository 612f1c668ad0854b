import type { ReadResourceResult } from "@modelcontextprotocol/client"
import type { Info } from "../../tool/tool.ts"
import { orAbort, within } from "../../util/abort.ts"
import type { McpServer } from "./config.ts"
import type { ConnectOptions, McpConnection, ResourceList } from "./connection.ts"
import { type McpPrompt, type McpPromptMessage, toPrompt, toPromptMessage } from "./content.ts"
import { McpServerError } from "./errors.ts"
import { resourceTools } from "./resources.ts"
import {
  createSupervisedServer,
  defaultRestarts,
  type Restarts,
  type SupervisedServer,
} from "./supervised-server.ts"
import { fromMcpTool, mcpToolID } from "./tool.ts"
import type { ToolFingerprints } from "./tool-fingerprints.ts"

/** The servers of an engine, and their shared settings. */
export interface McpPoolOptions
  extends Pick<ConnectOptions, "worktree" | "trusted" | "environment" | "record" | "tokens"> {
  servers: readonly McpServer[]
  fingerprints: ToolFingerprints
  /** Called with the ids of new and changed tools. Earlier grants for these tools no longer apply. */
  onChanged(ids: readonly string[]): Promise<void>
  /**
   * Called for each tool that cannot be used and each list of prompts or resources that fails, and once for each reason
   * why a server is unavailable.
   */
  onProblem(error: unknown): void
  /** Called when a running server reports that its tools changed. The next `tools` call lists them again. */
  onToolsChanged?(): void
  /** Restart limits. Set by tests only. */
  restarts?: Partial<Restarts>
}

/** A tool and the id of its server. For a resource tool, `server` lists the ids of all servers with resources. */
export interface PooledTool {
  server: string
  tool: Info
}

/** The MCP servers of an engine. Each server starts when it is first needed. */
export interface McpPool {
  /**
   * Lists the resource tools, then the tools of all servers in config order. Starts servers in parallel. A server that
   * fails is reported to `onProblem`, and its most recently listed tools are returned.
   */
  tools(): Promise<PooledTool[]>
  /** Starts all servers and returns their states. */
  status(options?: McpStatusOptions): Promise<McpServerStatus[]>
  /**
   * Lists the prompts of all servers in config order, or of the server with the id `server`. Starts only these servers.
   * A server that fails is reported to `onProblem`, and its prompts are omitted. Throws the error of `abortedError` if
   * the signal aborts.
   */
  prompts(signal: AbortSignal, server?: string): Promise<McpPrompt[]>
  /**
   * Fills in a prompt. Throws `McpServerError` if the server is unavailable, and `McpCallError` if the prompt is
   * unknown or an argument is missing. Throws the error of `abortedError` if the signal aborts.
   */
  prompt(call: PromptCall): Promise<McpPromptMessage[]>
  /** Lists the resources of all servers, like `prompts`. */
  resources(signal: AbortSignal): Promise<McpResources[]>
  /**
   * Reads a resource. Rejects with `McpServerError` if the server is unavailable, and with `McpCallError` if the
   * resource is unknown.
   */
  readResource(request: { server: string; uri: string; signal: AbortSignal }): Promise<ReadResourceResult>
  /**
   * Calls `onChanged` when the server reports a change to the resource, and after the server restarts. Returns a
   * function that stops watching. Rejects with the same errors as `readResource`, and with `McpCallError` if the server
   * does not report changes.
   */
  watchResource(request: ResourceWatch & { signal: AbortSignal }): Promise<() => Promise<void>>
  /** Ends all servers and all processes that they started. */
  close(): Promise<void>
}

/** The state of a server, as `tackle mcp list` shows it. `problem` is set if `status` is `failed`. */
export interface McpServerStatus {
  id: string
  status: "connected" | "failed"
  tools: { id: string; name: string; description: string }[]
  problem?: string
}

/** Options for starting all servers and returning their states. */
export interface McpStatusOptions {
  /**
   * Time in milliseconds after which a server that is still starting counts as failed. Ignored for servers with a
   * `timeout` in the config. Default: the start timeout.
   */
  limitMs?: number
  /** Called with each state as soon as it is known, in no particular order. */
  onStatus?(status: McpServerStatus): void
}

/** The resources of one server. */
export interface McpResources extends ResourceList {
  /** Id of the server in the config. */
  server: string
}

/** A request to watch a resource. */
export interface ResourceWatch {
  server: string
  uri: string
  onChanged(): void
}

/** The prompt to fill in, and its arguments. */
export interface PromptCall {
  server: string
  name: string
  arguments: Record<string, string>
  signal: AbortSignal
}

/** Maximum number of local servers. Each program runs as long as the engine, and can start several processes. */
const maxPrograms = 32

const tooMany = `the limit of ${maxPrograms} local servers has been reached. Disable a server with "enabled": false in the configuration.`

/** Creates a pool. Starts no servers. */
export function createMcpPool(options: McpPoolOptions): McpPool {
  const closing = new AbortController()
  const refused = options.servers.filter(({ settings }) => settings.type === "local").slice(maxPrograms)
  const servers = options.servers.map((server) =>
    createSupervisedServer({
      ...options,
      server,
      refusal: refused.includes(server) ? tooMany : undefined,
      restarts: { ...defaultRestarts, ...options.restarts },
      onToolsChanged: () => options.onToolsChanged?.(),
      onTools: (owner, tools) => options.fingerprints.check(owner, tools, options.onChanged),
      signal: closing.signal,
    }),
  )
  const refresh = (those: readonly SupervisedServer[] = servers) =>
    Promise.all(those.map((each) => each.refresh()))

  function serverNamed(id: string): SupervisedServer {
    const found = servers.find(({ server }) => server.id === id)
    if (!found) throw new McpServerError(id, "it is not in the configuration.")
    return found
  }

  async function connectionOf(id: string, signal: AbortSignal): Promise<McpConnection> {
    return await orAbort(serverNamed(id).connection(), signal)
  }

  /** Returns the resource tools for the servers that offer resources. */
  function toolsForResources(): PooledTool[] {
    const [first, ...others] = servers.filter((each) => each.has("resources")).map(({ server }) => server.id)
    if (first === undefined) return []
    const tools = resourceTools({
      servers: [first, ...others],
      list: async (id, signal) => (await connectionOf(id, signal)).resources(signal),
      read: async (id, uri, signal) => (await connectionOf(id, signal)).readResource(uri, signal),
    })
    return tools.map((tool) => ({ server: [first, ...others].join(", "), tool }))
  }

  async function ofEach<T>(
    kind: "prompts" | "resources",
    { signal, only }: { signal: AbortSignal; only?: string },
    ask: (id: string, connection: McpConnection) => Promise<T[]>,
  ): Promise<T[]> {
    const asked = servers.filter(({ server }) => only === undefined || server.id === only)
    await orAbort(refresh(asked), signal)
    const offering = asked.filter((each) => each.has(kind))
    const answers = offering.map(async ({ server: { id } }) => {
      try {
        return await ask(id, await connectionOf(id, signal))
      } catch (error) {
        if (signal.aborted) throw error
        options.onProblem(error)
        return []
      }
    })
    return (await Promise.all(answers)).flat()
  }

  return {
    async tools() {
      await refresh()
      // The resource tools come first, so that no server can replace them.
      return [...toolsForResources(), ...servers.flatMap(toolsOf)]
    },
    status: ({ limitMs, onStatus } = {}) =>
      Promise.all(
        servers.map(async (each) => {
          const status = await statusWithin(each, limitMs)
          onStatus?.(status)
          return status
        }),
      ),
    prompts: (signal, only) =>
      ofEach("prompts", { signal, only }, async (id, connection) =>
        (await connection.prompts(signal)).map((prompt) => toPrompt(id, prompt)),
      ),
    resources: (signal) =>
      ofEach("resources", { signal }, async (server, connection) => [
        { server, ...(await connection.resources(signal)) },
      ]),
    async readResource({ server, uri, signal }) {
      return (await connectionOf(server, signal)).readResource(uri, signal)
    },
    async watchResource({ server, uri, onChanged, signal }) {
      return await serverNamed(server).watchResource(uri, onChanged, signal)
    },
    async prompt({ server, name, arguments: args, signal }) {
      const connection = await connectionOf(server, signal)
      const { messages } = await connection.prompt(name, args, signal)
      return messages.map(toPromptMessage)
    },
    async close() {
      closing.abort()
      await Promise.all(servers.map((each) => each.end()))
    },
  }
}

function toolsOf({ server: { id }, ...supervised }: SupervisedServer): PooledTool[] {
  return supervised.tools().map((tool) => ({
    server: id,
    tool: fromMcpTool(id, tool, async (call) => {
      const connection = await orAbort(supervised.connection(), call.signal)
      return connection.call(call)
    }),
  }))
}

/**
 * Starts the server if needed and returns its state. After the limit, the server continues to start in the background.
 * Never rejects.
 */
async function statusWithin(
  supervised: SupervisedServer,
  limitMs: number | undefined,
): Promise<McpServerStatus> {
  const { id, settings } = supervised.server
  const started = supervised.refresh().then(() => true)
  if (limitMs === undefined || settings.timeout !== undefined) await started
  else if (!(await within(started, limitMs))) {
    const problem = `It did not answer within ${limitMs / 1000} s. If it needs more time, set its "timeout" (in milliseconds) in the config.`
    return { id, status: "failed", tools: [], problem }
  }
  const problem = supervised.problem()
  const tools = supervised.tools().map(({ name, description = "" }) => ({
    id: mcpToolID(id, name),
    name,
    description,
  }))
  return problem === undefined ? { id, status: "connected", tools } : { id, status: "failed", tools, problem }
}

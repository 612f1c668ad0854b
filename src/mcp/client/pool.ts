import type { ReadResourceResult } from "@modelcontextprotocol/client"
import type { Info } from "../../tool/tool.ts"
import { orAbort } from "../../util/abort.ts"
import type { McpServer } from "./config.ts"
import { McpServerError } from "./errors.ts"
import { createLivingServer, defaultRestarts, type LivingServer, type Restarts } from "./living-server.ts"
import type { PinBook } from "./pins.ts"
import { type McpPrompt, type McpPromptMessage, toPrompt, toPromptMessage } from "./prompts.ts"
import { resourceTools } from "./resources.ts"
import type { ConnectOptions, McpConnection, ResourceList } from "./server.ts"
import { type McpLook, type McpServerStatus, statusWithin } from "./server-status.ts"
import { fromMcpTool } from "./tool.ts"

/** What the servers of an engine share. */
export interface McpPoolOptions
  extends Pick<ConnectOptions, "worktree" | "trusted" | "environment" | "record" | "book"> {
  servers: readonly McpServer[]
  /** What the tools were: see {@link PinBook}. */
  pins: PinBook
  /** Tools that are new or others than they were: what was allowed of them holds no more. By id. */
  onChanged(ids: readonly string[]): Promise<void>
  /** Hears once of every reason for which a server is not there. */
  onProblem(error: unknown): void
  /** A running server says that its tools are others now: `tools` asks it again. */
  onToolsChanged?(): void
  /** How soon a server that ended is started again. For tests; the defaults are below. */
  restarts?: Partial<Restarts>
}

/** A tool with the server it is from, or with the servers that it reads from. */
export interface PooledTool {
  server: string
  tool: Info
}

/** All servers of an engine. None is started before it is needed. */
export interface McpPool {
  /**
   * The tools of every server, in the order of the config. Servers that are not up are started, side by side; one that
   * cannot be is told to `onProblem` and keeps the tools it was last known to have.
   */
  tools(): Promise<PooledTool[]>
  /** Starts them like `tools`. */
  status(look?: McpLook): Promise<McpServerStatus[]>
  /**
   * What the servers offer to people, in the order of the config. Starts them like `tools`; one that does not answer is
   * told to `onProblem` and has none. Throws the signal's reason.
   */
  prompts(signal: AbortSignal): Promise<McpPrompt[]>
  /**
   * A prompt, filled in. Throws `McpServerError` for a server that is not there, `McpCallError` where it has no such
   * prompt or lacks an argument, and the signal's reason.
   */
  prompt(asked: PromptCall): Promise<McpPromptMessage[]>
  /** What the servers have to read, in the order of the config. Starts them and tells faults like `prompts`. */
  resources(signal: AbortSignal): Promise<McpResources[]>
  /** Rejects as `prompt` does, and with `McpCallError` where the server has no such resource. */
  readResource(asked: { server: string; uri: string; signal: AbortSignal }): Promise<ReadResourceResult>
  /**
   * Calls the listener when the server says that the resource changed, and after the server was started anew. Returns the
   * end. Rejects like `readResource`, also for a server that tells of no changes.
   */
  watchResource(asked: ResourceWatch & { signal: AbortSignal }): Promise<() => Promise<void>>
  /** Ends all servers and whatever they started. */
  close(): Promise<void>
}

/** What one server has to read. */
export interface McpResources extends ResourceList {
  /** Id of the server in the config. */
  server: string
}

/** A resource whose changes somebody wants to hear of. */
export interface ResourceWatch {
  server: string
  uri: string
  onChanged(): void
}

/** A prompt to be filled in. */
export interface PromptCall {
  server: string
  name: string
  arguments: Record<string, string>
  signal: AbortSignal
}

/** Each is a process for as long as the engine runs, and many bring several. */
const mostPrograms = 32

const tooMany = `${mostPrograms} programs are named before it, and more are not started. Switch one off ("enabled": false).`

/** See {@link McpPool}. */
export function createMcpPool(options: McpPoolOptions): McpPool {
  const closing = new AbortController()
  const surplus = options.servers.filter(({ settings }) => settings.type === "local").slice(mostPrograms)
  const living = options.servers.map((server) =>
    createLivingServer({
      ...options,
      server,
      ...(surplus.includes(server) ? { refusal: tooMany } : {}),
      restarts: { ...defaultRestarts, ...options.restarts },
      onToolsChanged: () => options.onToolsChanged?.(),
      onTools: (owner, tools) => options.pins.check(owner, tools, options.onChanged),
      signal: closing.signal,
    }),
  )
  const refresh = () => Promise.all(living.map((each) => each.refresh()))

  function serverNamed(id: string): LivingServer {
    const found = living.find(({ server }) => server.id === id)
    if (!found) throw new McpServerError(id, "the configuration has no such server.")
    return found
  }

  async function connectionOf(id: string, signal: AbortSignal): Promise<McpConnection> {
    return await orAbort(serverNamed(id).connection(), signal)
  }

  /** Of all servers that say they have some. */
  function toolsForResources(): PooledTool[] {
    const [first, ...others] = living.filter((each) => each.has("resources")).map(({ server }) => server.id)
    if (first === undefined) return []
    const tools = resourceTools({
      servers: [first, ...others],
      list: async (id, signal) => (await connectionOf(id, signal)).resources(signal),
      read: async (id, uri, signal) => (await connectionOf(id, signal)).readResource(uri, signal),
    })
    return tools.map((tool) => ({ server: [first, ...others].join(", "), tool }))
  }

  /** What is asked of each server that says it has some. One that does not answer is told to `onProblem`, and has none. */
  async function ofEach<T>(
    kind: "prompts" | "resources",
    signal: AbortSignal,
    ask: (id: string, connection: McpConnection) => Promise<T[]>,
  ): Promise<T[]> {
    await orAbort(refresh(), signal)
    const offering = living.filter((each) => each.has(kind))
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
      // First, so that no server can stand in for them.
      return [...toolsForResources(), ...living.flatMap(toolsOf)]
    },
    status: ({ patienceMs, onStatus } = {}) =>
      Promise.all(
        living.map(async (each) => {
          const status = await statusWithin(each, patienceMs)
          onStatus?.(status)
          return status
        }),
      ),
    prompts: (signal) =>
      ofEach("prompts", signal, async (id, connection) =>
        (await connection.prompts(signal)).map((prompt) => toPrompt(id, prompt)),
      ),
    resources: (signal) =>
      ofEach("resources", signal, async (server, connection) => [
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
      await Promise.all(living.map((each) => each.end()))
    },
  }
}

function toolsOf({ server: { id }, ...living }: LivingServer): PooledTool[] {
  return living.tools().map((tool) => ({
    server: id,
    tool: fromMcpTool(id, tool, async (asked) => {
      const connection = await orAbort(living.connection(), asked.signal)
      return connection.call(asked)
    }),
  }))
}

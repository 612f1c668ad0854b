import type { CallToolResult, Tool } from "@modelcontextprotocol/client"
import type { Info } from "../tool/tool.ts"
import { orAbort, sleep, throwIfAborted } from "../util/abort.ts"
import { errorMessage } from "../util/errors.ts"
import type { RecordTree } from "../util/process.ts"
import type { McpServer } from "./config.ts"
import { McpServerError } from "./errors.ts"
import type { PinBook } from "./pins.ts"
import type { McpCall, McpConnection } from "./server.ts"
import { fromMcpTool } from "./tool.ts"
import { mcpToolID } from "./tool-id.ts"

/** What the servers of an engine share. */
export interface McpPoolOptions {
  servers: readonly McpServer[]
  /** Where programs start. Absolute, links followed. */
  worktree: string
  /** False: no program that lies in the work tree is run. */
  trusted: boolean
  /** What programs get, before their own variables. */
  environment: Readonly<Record<string, string | undefined>>
  /** See `ProgramOptions`. */
  record: RecordTree
  /** What the tools were: see {@link PinBook}. */
  pins: PinBook
  /** Tools that are new or others than they were: what was allowed of them holds no more. By id. */
  onChanged(ids: readonly string[]): Promise<void>
  /** Hears once of every reason for which a server is not there. */
  onProblem(error: unknown): void
  /** How soon a server that ended is started again. For tests; the defaults are below. */
  restarts?: Partial<Restarts>
}

/** A server as `tackle mcp list` shows it. `problem` is set where it is `failed`. */
export interface McpServerStatus {
  id: string
  status: "connected" | "failed"
  tools: { id: string; name: string; description: string }[]
  problem?: string
}

/** A server's tool, with the server it is from. */
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
  status(): Promise<McpServerStatus[]>
  /** Ends all servers and whatever they started. */
  close(): Promise<void>
}

/** A server is started again at most `max` times `withinMs`, after `delayMs`, twice that, four times that. */
interface Restarts {
  max: number
  withinMs: number
  delayMs: number
}

/** One that ends more often is broken, and each start may take half a minute of the person's time. */
const defaultRestarts: Restarts = { max: 3, withinMs: 10 * 60_000, delayMs: 500 }

interface Entry {
  server: McpServer
  connection?: Promise<McpConnection>
  /** Set once it is up. */
  running?: McpConnection
  /** As last heard; undefined where the server has to be asked again. */
  listed?: Promise<Tool[]>
  known: readonly Tool[]
  /** When it was started, in milliseconds since the epoch, oldest first. */
  starts: number[]
  problem?: string
}

/** See {@link McpPool}. */
export function createMcpPool(options: McpPoolOptions): McpPool {
  const restarts = { ...defaultRestarts, ...options.restarts }
  const closing = new AbortController()
  const entries = options.servers.map((server): Entry => ({ server, known: [], starts: [] }))

  /** The running server, or a new one. */
  function connectionOf(entry: Entry): Promise<McpConnection> {
    if (entry.connection && (!entry.running || entry.running.alive())) return entry.connection
    const begun = start(entry)
    entry.connection = begun
    delete entry.running
    delete entry.listed
    begun.then(
      (connection) => {
        if (entry.connection === begun) entry.running = connection
      },
      () => {
        if (entry.connection === begun) delete entry.connection
      },
    )
    return begun
  }

  async function start(entry: Entry): Promise<McpConnection> {
    const { server } = entry
    throwIfAborted(closing.signal)
    entry.starts = entry.starts.filter((time) => time > Date.now() - restarts.withinMs)
    const again = entry.starts.length
    if (again > restarts.max) {
      const minutes = restarts.withinMs / 60_000
      throw new McpServerError(
        server.id,
        `it was started ${again} times within ${minutes} minutes and is not started again for now. ${entry.problem ?? ""}`.trim(),
      )
    }
    entry.starts.push(Date.now())
    if (again > 0) await sleep(restarts.delayMs * 2 ** (again - 1), closing.signal)
    const { connectServer } = await import("./server.ts")
    return connectServer({
      server,
      worktree: options.worktree,
      trusted: options.trusted,
      environment: options.environment,
      record: options.record,
      onToolsChanged: () => delete entry.listed,
      signal: closing.signal,
    })
  }

  /** Keeps what is known where the server is not there. */
  async function refresh(entry: Entry): Promise<void> {
    try {
      const connection = await connectionOf(entry)
      entry.listed ??= connection.tools()
      const tools = await entry.listed
      if (tools !== entry.known) await options.pins.check(entry.server, tools, options.onChanged)
      entry.known = tools
      delete entry.problem
    } catch (error) {
      delete entry.listed
      if (closing.signal.aborted) return
      const problem = errorMessage(error)
      if (entry.problem !== problem) options.onProblem(error)
      entry.problem = problem
    }
  }

  async function call(entry: Entry, asked: McpCall): Promise<CallToolResult> {
    const connection = await orAbort(connectionOf(entry), asked.signal)
    return connection.call(asked)
  }

  function toolsOf(entry: Entry): PooledTool[] {
    const { server, known } = entry
    return known.map((tool) => ({
      server: server.id,
      tool: fromMcpTool(server.id, tool, (asked) => call(entry, asked)),
    }))
  }

  return {
    async tools() {
      await Promise.all(entries.map(refresh))
      return entries.flatMap(toolsOf)
    },
    async status() {
      await Promise.all(entries.map(refresh))
      return entries.map(statusOf)
    },
    async close() {
      closing.abort()
      const connections = await Promise.allSettled(entries.map(({ connection }) => connection))
      await Promise.all(
        connections.map((result) => (result.status === "fulfilled" ? result.value?.end() : undefined)),
      )
    },
  }
}

function statusOf({ server, known, problem }: Entry): McpServerStatus {
  const tools = known.map((tool) => ({
    id: mcpToolID(server.id, tool.name),
    name: tool.name,
    description: tool.description ?? "",
  }))
  return problem === undefined
    ? { id: server.id, status: "connected", tools }
    : { id: server.id, status: "failed", tools, problem }
}

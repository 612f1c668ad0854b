import {
  type CallToolResult,
  Client,
  type Progress,
  type Tool,
  type Transport,
} from "@modelcontextprotocol/client"
import { abortedError } from "../util/abort.ts"
import { errorMessage, TackleError } from "../util/errors.ts"
import type { TreeIdentity } from "../util/process-tree.ts"
import type { LocalServer, McpServer } from "./config.ts"
import { McpCallError, McpServerError } from "./errors.ts"
import { createProcessTransport } from "./process-transport.ts"

/** Where a server works, and who hears of it. */
export interface ConnectOptions {
  server: McpServer
  /** Where programs start. Absolute. */
  cwd: string
  /** What programs get, before their own variables. */
  environment: Readonly<Record<string, string | undefined>>
  /** See `ProgramOptions`. */
  record(identity: TreeIdentity | undefined): () => void
  /** The server says that its tools are others now. */
  onToolsChanged(): void
  /** Fires to give up the start. */
  signal: AbortSignal
}

/** One call of a tool. */
export interface McpCall {
  name: string
  args: Record<string, unknown>
  signal: AbortSignal
  onProgress(progress: Progress): void
}

/** A server that is up. */
export interface McpConnection {
  /** Every tool that it has now. Throws `McpServerError`. */
  tools(): Promise<Tool[]>
  /**
   * Rejects with `McpCallError` where there is no answer, and with the signal's reason, of which the server is told. An
   * error that the tool itself reports is a result.
   */
  call(call: McpCall): Promise<CallToolResult>
  /** False once it ended. */
  alive(): boolean
  /** Asks it to end, then ends it with all that it started. May be called again. */
  end(): Promise<void>
}

/** What the largest `npx` takes to load its package. In milliseconds. */
const defaultStartMs = 30_000

/** A call that shows no progress for so long is given up. In milliseconds. */
const silenceMs = 10 * 60_000

/** Starts or reaches the server and greets it. Throws `McpServerError`, and the signal's reason. */
export async function connectServer(options: ConnectOptions): Promise<McpConnection> {
  const { server, signal } = options
  const { id, settings } = server
  const timeout = settings.timeout ?? defaultStartMs
  const transport = openTransport(options)
  const client = new Client({ name: "tackle", version: clientVersion })
  let alive = true
  client.onclose = () => {
    alive = false
  }
  // Every request hears of its own fault; what is left are lines that are no messages.
  client.onerror = () => {}
  client.setNotificationHandler("notifications/tools/list_changed", () => options.onToolsChanged())

  const why = (error: unknown) => transport.explain?.(errorMessage(error)) ?? errorMessage(error)
  try {
    await client.connect(transport, { timeout, signal })
  } catch (error) {
    const problem = why(error)
    await transport.close()
    if (signal.aborted) throw abortedError(signal)
    throw new McpServerError(id, problem, error)
  }

  return {
    async tools() {
      if (!client.getServerCapabilities()?.tools) return []
      try {
        return (await client.listTools(undefined, { timeout, signal })).tools
      } catch (error) {
        if (signal.aborted) throw abortedError(signal)
        throw new McpServerError(id, `it did not name its tools: ${why(error)}`, error)
      }
    },
    async call({ name, args, signal: stopped, onProgress }) {
      try {
        return await client.callTool(
          { name, arguments: args },
          { signal: stopped, onprogress: onProgress, timeout: silenceMs, resetTimeoutOnProgress: true },
        )
      } catch (error) {
        if (stopped.aborted) throw abortedError(stopped)
        if (TackleError.isInstance(error)) throw error
        throw new McpCallError(callFailure(id, name, alive ? undefined : why(error), error), error)
      }
    },
    alive: () => alive,
    end: () => client.close(),
  }
}

/** The protocol wants one; servers at most note it, and a name by which they could tell us apart helps nobody. */
const clientVersion = "0"

interface ServerTransport extends Transport {
  explain?(fault: string): string
}

function openTransport({ server, cwd, environment, record }: ConnectOptions): ServerTransport {
  const { settings, id } = server
  if (settings.type === "remote") throw new McpServerError(id, "servers at an address are not supported yet.")
  const env = { ...environment, ...settings.environment }
  return createProcessTransport({ argv: argvOf(settings), cwd, env, record })
}

function argvOf({ command }: LocalServer): [string, ...string[]] {
  const [program = "", ...args] = command
  return [program, ...args]
}

function callFailure(server: string, tool: string, ended: string | undefined, error: unknown): string {
  if (ended === undefined) return `The MCP server ${server} could not run ${tool}: ${errorMessage(error)}`
  return `The MCP server ${server} ended while it ran ${tool}: ${ended}\nIt is not known what was done. The next call starts it again.`
}

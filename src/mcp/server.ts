import { delimiter } from "node:path"
import { type CallToolResult, Client, type Progress, type Tool } from "@modelcontextprotocol/client"
import { findProgram, type ProgramPlaces, programDirectories } from "../lsp/find-program.ts"
import { abortedError } from "../util/abort.ts"
import type { RecordTree } from "../util/process.ts"
import type { McpServer } from "./config.ts"
import { McpCallError, McpServerError } from "./errors.ts"
import { createHttpTransport, createSseTransport } from "./http-transport.ts"
import { createProcessTransport } from "./process-transport.ts"
import type { ServerTransport } from "./transport.ts"

/** Where a server works, and who hears of it. */
export interface ConnectOptions {
  server: McpServer
  /** Where programs start. Absolute, links followed. */
  worktree: string
  /** False: no program that lies in the work tree is run. */
  trusted: boolean
  /** What programs get, before their own variables. */
  environment: Readonly<Record<string, string | undefined>>
  /** See `ProgramOptions`. */
  record: RecordTree
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
  const { client, transport } = await greetFirst(waysTo(options), options, timeout)
  let lost = false
  client.onclose = () => {
    lost = true
  }

  return {
    async tools() {
      if (!client.getServerCapabilities()?.tools) return []
      try {
        return (await client.listTools(undefined, { timeout, signal })).tools
      } catch (error) {
        lost ||= transport.isLost(error)
        if (signal.aborted) throw abortedError(signal)
        throw new McpServerError(id, `it did not name its tools: ${transport.explain(error)}`, error)
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
        lost ||= transport.isLost(error)
        throw new McpCallError(callFailure({ id, name, lost, why: transport.explain(error) }), error)
      }
    },
    alive: () => !lost,
    end: () => client.close(),
  }
}

/** The ways to the server, in the order in which they are tried. Throws `McpServerError` for a program that is not there. */
function waysTo({ server: { id, settings }, ...options }: ConnectOptions): ServerTransport[] {
  if (settings.type === "remote") return [createHttpTransport(settings), createSseTransport(settings)]
  const { worktree, trusted, environment, record } = options
  const given = { ...environment, ...settings.environment }
  const places: ProgramPlaces = { worktree, trusted, searchPath: given.PATH ?? "" }
  const [name = "", ...args] = settings.command
  const program = findProgram(name, places)
  if (program === undefined) {
    const where = name.includes("/") ? `in ${worktree}` : "on PATH"
    const hint = trusted ? "" : " What lies in a project that is not trusted is not run (`tackle trust`)."
    throw new McpServerError(id, `there is no program ${name} ${where} that may be run.${hint}`)
  }
  const env = { ...given, PATH: programDirectories(places).join(delimiter) }
  return [createProcessTransport({ argv: [program, ...args], cwd: worktree, env, record })]
}

/** By the first way that the server speaks. Where it speaks none, the fault is that of the first. */
async function greetFirst(
  ways: readonly ServerTransport[],
  { server, signal, onToolsChanged }: ConnectOptions,
  timeout: number,
): Promise<{ client: Client; transport: ServerTransport }> {
  let problem: McpServerError | undefined
  for (const transport of ways) {
    const client = new Client({ name: "tackle", version: clientVersion })
    // Every request hears of its own fault; what is left are lines that are no messages.
    client.onerror = () => {}
    client.setNotificationHandler("notifications/tools/list_changed", () => onToolsChanged())
    try {
      await client.connect(transport, { timeout, signal })
      return { client, transport }
    } catch (error) {
      problem ??= new McpServerError(server.id, transport.explain(error), error)
      await transport.close()
      if (signal.aborted) throw abortedError(signal)
      if (!transport.isForeign(error)) throw problem
    }
  }
  throw problem
}

/** The protocol wants one; servers at most note it. */
const clientVersion = "0"

function callFailure({ id, name, lost, why }: { id: string; name: string; lost: boolean; why: string }) {
  if (!lost) return `The MCP server ${id} could not run ${name}: ${why}`
  return `The MCP server ${id} was lost while it ran ${name}: ${why}\nIt is not known what was done. The next call connects again.`
}

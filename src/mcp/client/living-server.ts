import type { Tool } from "@modelcontextprotocol/client"
import { sleep, throwIfAborted } from "../../util/abort.ts"
import { errorMessage } from "../../util/errors.ts"
import type { McpServer } from "./config.ts"
import { McpServerError, McpSignInError } from "./errors.ts"
import { createResourceWatches, type ResourceWatches } from "./resource-watches.ts"
import type { ConnectOptions, McpConnection } from "./server.ts"

/** A server is started again at most `max` times `withinMs`, after `delayMs`, twice that, four times that. */
export interface Restarts {
  max: number
  withinMs: number
  delayMs: number
}

/** One that ends more often is broken, and each start may take half a minute of the person's time. */
export const defaultRestarts: Restarts = { max: 3, withinMs: 10 * 60_000, delayMs: 500 }

/** How a server is kept alive, and who hears of what becomes of it. */
export interface LivingServerOptions extends Omit<ConnectOptions, "onResourceChanged"> {
  restarts: Restarts
  /** Why it is never started. */
  refusal?: string
  /** Gets the tools before they count. Rejects where they cannot. */
  onTools(server: McpServer, tools: readonly Tool[]): Promise<void>
  /** Hears once of every reason for which the server is not there. */
  onProblem(error: unknown): void
}

/** A server that is started when it is needed, and started again when it ended. */
export interface LivingServer {
  readonly server: McpServer
  /** The running server, or a new one. Throws `McpServerError`, and the signal's reason. */
  connection(): Promise<McpConnection>
  /** Brings what is known of it up to date; it stays as it was where the server is not there. Does not reject. */
  refresh(): Promise<void>
  /** Its tools as last heard. */
  tools(): readonly Tool[]
  /** True where it said that it has them. False as long as it never was up. */
  has(kind: "resources" | "prompts"): boolean
  /** Starts it like `connection`. */
  watchResource: ResourceWatches["add"]
  /** Why it was not there at the last look. */
  problem(): string | undefined
  /** Ends it and whatever it started. The signal has to be aborted before. */
  end(): Promise<void>
}

/** See {@link LivingServer}. Nothing is started yet. */
export function createLivingServer(options: LivingServerOptions): LivingServer {
  const { server, restarts, signal } = options
  let connecting: Promise<McpConnection> | undefined
  /** Set once it is up. */
  let running: McpConnection | undefined
  /** Those that were lost, until their calls are over. */
  const leaving = new Set<McpConnection>()
  /** As last heard; undefined where the server has to be asked again. */
  let listed: Promise<Tool[]> | undefined
  let known: readonly Tool[] = []
  let has: McpConnection["has"] = { tools: false, resources: false, prompts: false }
  let problem: string | undefined
  /** When it was started, in milliseconds since the epoch, oldest first. */
  let starts: number[] = []
  const watches = createResourceWatches({
    connection,
    running: () => (running?.alive() ? running : undefined),
  })

  function connection(): Promise<McpConnection> {
    if (connecting && (!running || running.alive())) return connecting
    if (running) leave(running)
    const begun = start()
    connecting = begun
    running = undefined
    listed = undefined
    begun.then(
      (connected) => {
        if (connecting !== begun) return
        running = connected
        has = connected.has
        watches.renew(connected, signal).catch((error: unknown) => {
          if (!signal.aborted) options.onProblem(error)
        })
      },
      () => {
        if (connecting === begun) connecting = undefined
      },
    )
    return begun
  }

  /** One call was lost; others may be answered yet. Left alone, its messages would come in for ever. */
  function leave(lost: McpConnection): void {
    leaving.add(lost)
    lost
      .callsOver()
      .then(() => lost.end())
      .then(() => leaving.delete(lost), options.onProblem)
  }

  async function start(): Promise<McpConnection> {
    throwIfAborted(signal)
    if (options.refusal !== undefined) throw new McpServerError(server.id, options.refusal)
    starts = starts.filter((time) => time > Date.now() - restarts.withinMs)
    const again = starts.length
    if (again > restarts.max) {
      const minutes = restarts.withinMs / 60_000
      throw new McpServerError(
        server.id,
        `it was started ${again} times within ${minutes} minutes and is not started again for now. ${problem ?? ""}`.trim(),
      )
    }
    starts.push(Date.now())
    if (again > 0) await sleep(restarts.delayMs * 2 ** (again - 1), signal)
    const { connectServer } = await import("./server.ts")
    try {
      return await connectServer({
        ...options,
        onResourceChanged: watches.tell,
        onToolsChanged() {
          listed = undefined
          options.onToolsChanged()
        },
      })
    } catch (error) {
      // It is not broken: the next attempt after the person signed in must not be refused.
      if (error instanceof McpServerError && error.cause instanceof McpSignInError) starts.pop()
      throw error
    }
  }

  return {
    server,
    connection,
    async refresh() {
      try {
        const connected = await connection()
        listed ??= connected.tools()
        const tools = await listed
        if (tools !== known) await options.onTools(server, tools)
        known = tools
        problem = undefined
      } catch (error) {
        listed = undefined
        if (signal.aborted) return
        const words = errorMessage(error)
        if (problem !== words) options.onProblem(error)
        problem = words
      }
    },
    tools: () => known,
    has: (kind) => has[kind],
    watchResource: watches.add,
    problem: () => problem,
    async end() {
      const [result] = await Promise.allSettled([connecting])
      if (result.status === "fulfilled") await result.value?.end()
      for (const lost of leaving) await lost.end()
    },
  }
}

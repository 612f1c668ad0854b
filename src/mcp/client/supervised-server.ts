import type { Tool } from "@modelcontextprotocol/client"
import { orAbort, sleep, throwIfAborted } from "../../util/abort.ts"
import { errorMessage } from "../../util/errors.ts"
import type { McpServer } from "./config.ts"
import type { ConnectOptions, McpConnection } from "./connection.ts"
import { McpServerError, McpSignInError } from "./errors.ts"

/** A server is restarted at most `max` times `withinMs`. The delay starts at `delayMs` and doubles each time. */
export interface Restarts {
  max: number
  withinMs: number
  delayMs: number
}

/** Default restart limits. A server that exceeds them is broken, and each start can take half a minute. */
export const defaultRestarts: Restarts = { max: 3, withinMs: 10 * 60_000, delayMs: 500 }

/** How a server is supervised. */
export interface SupervisedServerOptions extends Omit<ConnectOptions, "onResourceChanged"> {
  restarts: Restarts
  /** If set, the server never starts, for this reason. */
  refusal?: string
  /** Called with the tools before they take effect. A rejection keeps the previous tools. */
  onTools(server: McpServer, tools: readonly Tool[]): Promise<void>
  /** Called once for each reason why the server is unavailable. */
  onProblem(error: unknown): void
}

/** A server that is started when needed, and restarted after it ended. */
export interface SupervisedServer {
  readonly server: McpServer
  /** Returns the running server, or starts it. Throws `McpServerError`, and the signal's reason. */
  connection(): Promise<McpConnection>
  /** Starts the server if needed and lists its tools. On failure the last known tools stay. Does not reject. */
  refresh(): Promise<void>
  /** The tools from the last successful list. */
  tools(): readonly Tool[]
  /** Returns true if the server said that it offers them. False before its first start. */
  has(kind: "resources" | "prompts"): boolean
  /**
   * Calls the listener after each change of the resource that the server reports, and after each restart. Starts the
   * server like `connection`. Returns a function that stops watching; it rejects with `McpCallError`.
   */
  watchResource(uri: string, listener: () => void, signal: AbortSignal): Promise<() => Promise<void>>
  /** Why the last refresh failed. */
  problem(): string | undefined
  /** Ends the server and all processes it started. Abort the signal first. */
  end(): Promise<void>
}

/** Supervises a server without starting it. */
export function createSupervisedServer(options: SupervisedServerOptions): SupervisedServer {
  const { server, restarts, signal } = options
  let connecting: Promise<McpConnection> | undefined
  /** Set once the server is up. */
  let running: McpConnection | undefined
  /** Lost connections that still have calls. */
  const closing = new Set<McpConnection>()
  /** Undefined if the tools must be listed again. */
  let listed: Promise<Tool[]> | undefined
  let known: readonly Tool[] = []
  let has: McpConnection["has"] = { tools: false, resources: false, prompts: false }
  let problem: string | undefined
  /** Start times in milliseconds since the epoch, oldest first. */
  let starts: number[] = []
  const watches = createResourceWatches(connection, () => (running?.alive() ? running : undefined))

  function connection(): Promise<McpConnection> {
    if (connecting && (!running || running.alive())) return connecting
    if (running) release(running)
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

  /** Ends a lost connection after its other calls, which may still get an answer. */
  function release(lost: McpConnection): void {
    closing.add(lost)
    lost
      .callsDone()
      .then(() => lost.end())
      .then(() => closing.delete(lost), options.onProblem)
  }

  async function start(): Promise<McpConnection> {
    throwIfAborted(signal)
    if (options.refusal !== undefined) throw new McpServerError(server.id, options.refusal)
    starts = starts.filter((time) => time > Date.now() - restarts.withinMs)
    const count = starts.length
    if (count > restarts.max) {
      const minutes = restarts.withinMs / 60_000
      throw new McpServerError(
        server.id,
        `it was started ${count} times within ${minutes} minutes and will not be restarted for now. ${problem ?? ""}`.trim(),
      )
    }
    starts.push(Date.now())
    if (count > 0) await sleep(restarts.delayMs * 2 ** (count - 1), signal)
    const { connectServer } = await import("./connection.ts")
    try {
      return await connectServer({
        ...options,
        onResourceChanged: watches.notify,
        onToolsChanged() {
          listed = undefined
          options.onToolsChanged()
        },
      })
    } catch (error) {
      // The server is not broken: the first attempt after signing in must not count as a restart.
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
        const message = errorMessage(error)
        if (problem !== message) options.onProblem(error)
        problem = message
      }
    },
    tools: () => known,
    has: (kind) => has[kind],
    watchResource: watches.add,
    problem: () => problem,
    async end() {
      const [result] = await Promise.allSettled([connecting])
      if (result.status === "fulfilled") await result.value?.end()
      for (const lost of closing) await lost.end()
    },
  }
}

/** Time for a server to end a subscription, in milliseconds. */
const unwatchMs = 5000

/** Keeps the listeners of resources across restarts. `connection` starts the server if needed; `running` does not. */
function createResourceWatches(
  connection: () => Promise<McpConnection>,
  running: () => McpConnection | undefined,
) {
  const listeners = new Map<string, Set<() => void>>()

  /** Returns true if the listener was the last one of the resource. */
  function remove(uri: string, listener: () => void): boolean {
    const all = listeners.get(uri)
    if (!all?.delete(listener) || all.size > 0) return false
    return listeners.delete(uri)
  }

  function notify(uri: string): void {
    for (const listener of listeners.get(uri) ?? []) listener()
  }

  return {
    async add(uri: string, given: () => void, signal: AbortSignal): Promise<() => Promise<void>> {
      // A wrapper per watch: the same function can watch twice.
      const listener = () => given()
      const connected = await orAbort(connection(), signal)
      // Before the request, so that no notification is missed.
      listeners.set(uri, (listeners.get(uri) ?? new Set()).add(listener))
      try {
        await connected.watchResource(uri, signal)
      } catch (error) {
        remove(uri, listener)
        throw error
      }
      return async () => {
        if (remove(uri, listener)) await running()?.unwatchResource(uri, AbortSignal.timeout(unwatchMs))
      }
    },
    notify,
    /** Watches all resources at a restarted server. Rejects with `McpCallError`. */
    async renew(connected: McpConnection, signal: AbortSignal): Promise<void> {
      const renewing = [...listeners.keys()].map(async (uri) => {
        await connected.watchResource(uri, signal)
        // Changes during the restart were not reported.
        notify(uri)
      })
      await Promise.all(renewing)
    },
  }
}

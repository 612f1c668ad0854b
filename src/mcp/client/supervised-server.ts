import type { Tool } from "@modelcontextprotocol/client"
import { orAbort, sleep, throwIfAborted } from "../../util/abort.ts"
import { errorMessage } from "../../util/errors.ts"
import type { McpServer } from "./config.ts"
import type { ConnectOptions, McpConnection } from "./connection.ts"
import { McpServerError, McpSignInError } from "./errors.ts"

/**
 * Restart limits. A server restarts at most `max` times within `withinMs`. The delay starts at `delayMs` and doubles
 * with each restart.
 */
export interface Restarts {
  max: number
  withinMs: number
  delayMs: number
}

/**
 * Default restart limits. The limits are low, because each start can take half a minute. A server that exceeds the
 * limits is considered broken.
 */
export const defaultRestarts: Restarts = { max: 3, withinMs: 10 * 60_000, delayMs: 500 }

/** The server, its restart limits, and callbacks. */
export interface SupervisedServerOptions extends Omit<ConnectOptions, "onResourceChanged"> {
  restarts: Restarts
  /** The reason why the server must not start. If set, the server never starts, and errors contain this reason. */
  refusal?: string
  /** Called with the tools before they take effect. If the promise rejects, the previous tools remain in effect. */
  onTools(server: McpServer, tools: readonly Tool[]): Promise<void>
  /**
   * Called for each tool that cannot be used and each subscription that cannot be renewed, and once for each reason why
   * the server is unavailable.
   */
  onProblem(error: unknown): void
}

/** A server that starts when it is first needed. If it has ended, the next use starts it again. */
export interface SupervisedServer {
  readonly server: McpServer
  /**
   * Returns the connection to the running server, and starts the server if needed. Throws `McpServerError` if the
   * server is unavailable. Throws the error of `abortedError` if the signal aborts.
   */
  connection(): Promise<McpConnection>
  /** Starts the server if needed and lists its tools. On failure, keeps the previous tools. Never rejects. */
  refresh(): Promise<void>
  /** Returns the tools from the last successful list. */
  tools(): readonly Tool[]
  /** Returns true if the server declares the feature. Returns false before the first start. */
  has(kind: "resources" | "prompts"): boolean
  /**
   * Calls the listener after each reported change to the resource and after each restart. Starts the server if
   * needed. Returns a function that stops watching and can reject with `McpCallError`.
   */
  watchResource(uri: string, listener: () => void, signal: AbortSignal): Promise<() => Promise<void>>
  /** Returns the reason why the latest refresh failed, or undefined if it succeeded. */
  problem(): string | undefined
  /** Ends the server and all processes that it started. Abort the signal before this call. */
  end(): Promise<void>
}

/** Creates a supervised server without starting it. */
export function createSupervisedServer(options: SupervisedServerOptions): SupervisedServer {
  const { server, restarts, signal } = options
  let connecting: Promise<McpConnection> | undefined
  /** The connection to the server. Set once the server is connected. */
  let running: McpConnection | undefined
  /** Lost connections that still have running calls. */
  const closing = new Set<McpConnection>()
  /** The tools from the latest list. Undefined if they must be listed again. */
  let listed: Promise<Tool[]> | undefined
  let known: readonly Tool[] = []
  let has: McpConnection["has"] = { tools: false, resources: false, prompts: false }
  let problem: string | undefined
  /** The error for too many starts, kept so that its message stays the same until the server can start again. */
  let exceeded: McpServerError | undefined
  /** Times of the starts within the last `withinMs`, as returned by `performance.now()`, oldest first. */
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

  /** Ends a lost connection after its running calls finish, because these calls may still receive a response. */
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
    starts = starts.filter((time) => time > performance.now() - restarts.withinMs)
    const count = starts.length
    if (count > restarts.max) {
      const minutes = restarts.withinMs / 60_000
      exceeded ??= new McpServerError(
        server.id,
        `it was started ${count} times within ${minutes} minutes, so Tackle waits before it starts the server again. ${problem ?? ""}`.trim(),
      )
      throw exceeded
    }
    exceeded = undefined
    starts.push(performance.now())
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
      // A missing sign-in does not mean that the server is broken. The first attempt after signing in must not count as
      // a restart.
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

/** Time limit for ending a subscription on the server, in milliseconds. */
const unwatchMs = 5000

/**
 * Creates a registry of resource listeners, which remain registered when the server restarts. `connection` starts the
 * server if needed; `running` does not.
 */
function createResourceWatches(
  connection: () => Promise<McpConnection>,
  running: () => McpConnection | undefined,
) {
  const listeners = new Map<string, Set<() => void>>()

  /** Removes a listener. Returns true if it was the last listener for the resource. */
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
      // Wraps the listener, because the same function can be passed to several watches.
      const listener = () => given()
      const connected = await orAbort(connection(), signal)
      // Add the listener before the request, so that no notification is missed.
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
    /** Watches all resources again after the server restarts. Rejects with `McpCallError` if the server refuses. */
    async renew(connected: McpConnection, signal: AbortSignal): Promise<void> {
      const renewing = [...listeners.keys()].map(async (uri) => {
        await connected.watchResource(uri, signal)
        // Calls all listeners, because changes during the restart were not reported.
        notify(uri)
      })
      await Promise.all(renewing)
    },
  }
}

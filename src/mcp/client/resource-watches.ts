import { orAbort } from "../../util/abort.ts"
import type { McpConnection } from "./server.ts"

/** Who wants to hear of changes of a server's resources. They outlast its connections. */
export interface ResourceWatches {
  /**
   * Has the listener called whenever the server says that the resource changed, and after it was started anew. Returns the
   * end, which tells the server where nobody else listens; it rejects with `McpCallError`. Throws what the connection does.
   */
  add(uri: string, listener: () => void, signal: AbortSignal): Promise<() => Promise<void>>
  /** The server says that this one changed. */
  tell(uri: string): void
  /** Asks a server for all that the one before it was asked for. Rejects with `McpCallError`. */
  renew(connection: McpConnection, signal: AbortSignal): Promise<void>
}

/** How long a server may take to take note of an end, in milliseconds. */
const endMs = 5000

/** `connection` starts the server where it has to; `running` does not. */
export function createResourceWatches({
  connection,
  running,
}: {
  connection(): Promise<McpConnection>
  running(): McpConnection | undefined
}): ResourceWatches {
  const listeners = new Map<string, Set<() => void>>()

  function leave(uri: string, listener: () => void): boolean {
    const all = listeners.get(uri)
    if (!all?.delete(listener) || all.size > 0) return false
    return listeners.delete(uri)
  }

  function tell(uri: string): void {
    for (const listener of listeners.get(uri) ?? []) listener()
  }

  return {
    async add(uri, given, signal) {
      // One that listens twice is told twice, and ends each by itself.
      const listener = () => given()
      const connected = await orAbort(connection(), signal)
      // Before the server is asked: what it tells from then on is heard.
      listeners.set(uri, (listeners.get(uri) ?? new Set()).add(listener))
      try {
        await connected.watchResource(uri, signal)
      } catch (error) {
        leave(uri, listener)
        throw error
      }
      return async () => {
        if (leave(uri, listener)) await running()?.unwatchResource(uri, AbortSignal.timeout(endMs))
      }
    },
    tell,
    async renew(connected, signal) {
      const renewing = [...listeners.keys()].map(async (uri) => {
        await connected.watchResource(uri, signal)
        // What happened while there was no server is not known.
        tell(uri)
      })
      await Promise.all(renewing)
    },
  }
}

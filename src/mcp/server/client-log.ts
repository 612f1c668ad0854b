import type { LoggingLevel, Server, ServerContext } from "@modelcontextprotocol/server"

/** Sends log messages to one client. */
export interface ClientLog {
  /**
   * Sends a message if its level is at or above the client's log level. If `request` is given, uses its stream.
   * Resolves when the message has been sent. If sending fails, reports the failure to `onProblem`.
   */
  send(level: LoggingLevel, text: string, request?: ServerContext["mcpReq"]): Promise<void>
}

/** Levels in the protocol's order of severity. */
const levels: readonly LoggingLevel[] = [
  "debug",
  "info",
  "notice",
  "warning",
  "error",
  "critical",
  "alert",
  "emergency",
]

/** Log level for clients that do not set one. */
const defaultLevel: LoggingLevel = "warning"

/**
 * Creates a client's log and handles `logging/setLevel`. Level `warning` includes the engine's problems, `info` adds
 * the start and end of calls, and `debug` adds their progress.
 */
export function createClientLog(
  server: Server,
  onProblem: (message: string, error: unknown) => void,
): ClientLog {
  let wanted = levels.indexOf(defaultLevel)

  server.setRequestHandler("logging/setLevel", ({ params }) => {
    wanted = levels.indexOf(params.level)
    return {}
  })

  return {
    async send(level, text, request) {
      if (levels.indexOf(level) < wanted || !server.transport) return
      const message = {
        method: "notifications/message" as const,
        params: { level, logger: "tackle", data: text },
      }
      try {
        await (request ? request.notify(message) : server.notification(message))
      } catch (error) {
        onProblem("a log message could not be sent to a client", error)
      }
    },
  }
}

/** An engine warning that does not belong to a single call. */
export interface Warning {
  level: "warning" | "error"
  text: string
}

/** Passes engine warnings to all connected clients. */
export interface Warnings {
  send(warning: Warning): void
  /** Calls the listener for each new warning. Returns a function that removes the listener. */
  on(listener: (warning: Warning) => void): () => void
}

/** Creates a `Warnings` object without listeners. */
export function createWarnings(): Warnings {
  const listeners = new Set<(warning: Warning) => void>()
  return {
    send(warning) {
      for (const listener of listeners) listener(warning)
    },
    on(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}

import type { LoggingLevel, Server, ServerContext } from "@modelcontextprotocol/server"

/** What one client is told of the engine's work beside results. */
export interface ClientLog {
  /**
   * Sends a text, where the client wants its level: on the stream of the request where one is given. Resolves when it
   * is out; what cannot be sent is told to `onProblem`.
   */
  tell(level: LoggingLevel, text: string, request?: ServerContext["mcpReq"]): Promise<void>
}

/** In rising severity, as the protocol orders them. */
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

/** What a client is told that never said what it wants. */
const defaultLevel: LoggingLevel = "warning"

/**
 * Answers `logging/setLevel`. At `warning` the client hears of faults, at `info` also of its calls' beginning and end, at
 * `debug` of all that they show.
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
    async tell(level, text, request) {
      if (levels.indexOf(level) < wanted || !server.transport) return
      const message = {
        method: "notifications/message" as const,
        params: { level, logger: "tackle", data: text },
      }
      try {
        await (request ? request.notify(message) : server.notification(message))
      } catch (error) {
        onProblem("a client could not be told what happened", error)
      }
    },
  }
}

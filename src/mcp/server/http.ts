import type { IncomingMessage, ServerResponse } from "node:http"
import { startLocalServer } from "../../util/local-server.ts"
import type { ConnectionOptions } from "./connection.ts"
import { jsonRefusal, refusalOf } from "./guard.ts"
import { sendWebResponse, toWebRequest } from "./http-exchange.ts"
import { createHttpSessions } from "./http-sessions.ts"

/** Where the server listens, and whom it serves. */
export interface HttpOptions {
  connection: ConnectionOptions
  /** Default: 127.0.0.1. Any other than this machine's own needs a key. */
  host?: string
  /** 0: any free one. */
  port: number
  /** What clients have to send as `Authorization: Bearer`. Default: nothing. */
  key?: string
  /** How long a session without an open request is kept, in milliseconds. Default: 30 minutes. */
  idleMs?: number
  /** Clients at once. Default: 64. */
  maxSessions?: number
}

/** A server that listens. */
export interface HttpServer {
  /** What a client takes as the server's address. */
  url: string
  /** Ends every session with its calls, then every connection. */
  close(): Promise<void>
}

/** Serves clients over streamable HTTP. Throws `UsageError` for an option that cannot be, or a port that is taken. */
export async function startHttp(options: HttpOptions): Promise<HttpServer> {
  const { connection, host = "127.0.0.1", key, idleMs = 30 * 60 * 1000, maxSessions = 64 } = options
  const sessions = createHttpSessions({ connection, idleMs, maxSessions })

  async function answer(request: Request, gone: Promise<void>): Promise<Response> {
    const refusal = refusalOf(request, { key, host })
    if (refusal) return refusal
    if (new URL(request.url).pathname !== path) return jsonRefusal(404, `There is only ${path} here.`)
    return await sessions.handle(request, gone)
  }

  async function exchange(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const leaving = new AbortController()
    const { promise: gone, resolve } = Promise.withResolvers<void>()
    response.once("close", () => {
      leaving.abort()
      resolve()
    })
    await sendWebResponse(await answer(toWebRequest(incoming, leaving.signal), gone), response)
  }

  const { server, origin } = await startLocalServer({
    name: "The MCP server",
    host,
    port: options.port,
    key,
    answer: exchange,
    onProblem: (error) => connection.onProblem("an HTTP request could not be answered", error),
  })
  return {
    url: `${origin}${path}`,
    async close() {
      if (!server.listening) return
      const { promise, resolve } = Promise.withResolvers<void>()
      server.close(() => resolve())
      await sessions.close()
      server.closeAllConnections()
      await promise
    },
  }
}

const path = "/mcp"

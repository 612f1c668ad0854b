import type { IncomingMessage, ServerResponse } from "node:http"
import { Readable } from "node:stream"
import { pipeline } from "node:stream/promises"
import { hostHeaderValidationResponse, originValidationResponse } from "@modelcontextprotocol/server"
import { isAuthorized, isLoopback, loopbackHosts, startLocalServer } from "../../util/local-server.ts"
import type { ConnectionOptions } from "./connection.ts"
import { createHttpSessions, errorResponse } from "./http-sessions.ts"

/** The server's address and limits. */
export interface HttpOptions {
  connection: ConnectionOptions
  /** Host to listen on. Default: 127.0.0.1. */
  host?: string
  /** Port to listen on. 0 selects any free port. */
  port: number
  /**
   * Key that clients send as `Authorization: Bearer`. The key is required, because other users on the machine can
   * connect.
   */
  key: string
  /** Time in milliseconds after which a session without an open request ends. Default: 30 minutes. */
  idleMs?: number
  /** Maximum number of concurrent clients. Default: 64. */
  maxSessions?: number
}

/** A listening server. */
export interface HttpServer {
  /** URL for clients. */
  url: string
  /** Ends all sessions and their calls, then closes all connections. */
  close(): Promise<void>
}

const path = "/mcp"

/** Serves clients over streamable HTTP. Throws `UsageError` if the server cannot listen on the address. */
export async function startHttp(options: HttpOptions): Promise<HttpServer> {
  const { connection, host = "127.0.0.1", key, idleMs = 30 * 60 * 1000, maxSessions = 64 } = options
  const sessions = createHttpSessions({ connection, idleMs, maxSessions })

  async function answer(request: Request, gone: Promise<void>): Promise<Response> {
    const refusal = refusalOf(request, { key, host })
    if (refusal) return refusal
    if (new URL(request.url).pathname !== path)
      return errorResponse(404, `Not found. The endpoint is ${path}.`)
    return await sessions.handle(request, gone)
  }

  async function exchange(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const closed = new AbortController()
    const { promise: gone, resolve } = Promise.withResolvers<void>()
    response.once("close", () => {
      closed.abort()
      resolve()
    })
    await sendWebResponse(await answer(toWebRequest(incoming, closed.signal), gone), response)
  }

  const { server, origin } = await startLocalServer({
    name: "The MCP server",
    host,
    port: options.port,
    key,
    answer: exchange,
    onProblem: (error) => connection.onProblem("an HTTP request could not be handled", error),
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

/**
 * Returns the error response for a request that must be rejected, or undefined for an allowed request. Protects against
 * web pages whose domain resolves to this server: such a page sends its domain as `Host` and `Origin`. `Host` is
 * checked only on a loopback address, and `Origin` is always checked.
 */
function refusalOf(request: Request, { key, host }: { key: string; host: string }): Response | undefined {
  const foreign =
    (isLoopback(host) ? hostHeaderValidationResponse(request, [...loopbackHosts]) : undefined) ??
    originValidationResponse(request, [...loopbackHosts])
  if (foreign) return foreign
  if (isAuthorized(request.headers.get("authorization"), key)) return undefined
  return errorResponse(
    401,
    'The key is missing or wrong. Send it in the header "Authorization: Bearer <key>".',
    {
      "www-authenticate": "Bearer",
    },
  )
}

/** Converts a Node request to a web request. The request's signal aborts when the client disconnects. */
function toWebRequest(incoming: IncomingMessage, signal: AbortSignal): Request {
  const { method = "GET" } = incoming
  const headers = new Headers()
  for (const [name, value] of Object.entries(incoming.headers)) {
    for (const part of [value ?? []].flat()) headers.append(name, part)
  }
  // The `Host` header is checked separately.
  const url = new URL(incoming.url ?? "/", "http://localhost")
  if (method === "GET" || method === "HEAD") return new Request(url, { method, headers, signal })
  const body = Readable.toWeb(incoming) as ReadableStream<Uint8Array>
  return new Request(url, { method, headers, signal, body, duplex: "half" })
}

/** Streams a response. Resolves when the response has been sent or the client has disconnected. */
async function sendWebResponse(answer: Response, response: ServerResponse): Promise<void> {
  response.writeHead(answer.status, Object.fromEntries(answer.headers))
  if (!answer.body) {
    response.end()
    return
  }
  response.flushHeaders()
  try {
    await pipeline(Readable.fromWeb(answer.body), response)
  } catch (error) {
    // A disconnect is not an error.
    if (!response.destroyed) throw error
  }
}

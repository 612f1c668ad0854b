import { once } from "node:events"
import type { ServerResponse } from "node:http"
import type { ClientApi } from "./api.ts"
import type { GatewayError } from "./errors.ts"

/** The answer to one request. Drops data that is sent after the client disconnects. */
export interface Reply {
  sendJson(status: number, body: object, headers?: Record<string, string>): void
  sendError(error: GatewayError): void
  /** Forwards the upstream server's response. `text` is its body, which has already been read. */
  sendText(from: Response, text: string): void
  /** Streams an answer from the upstream. Rejects if the answer is interrupted. */
  pipe(from: Response): Promise<void>
  /** Starts a stream of server-sent events. */
  events(): EventReply
  readonly begun: boolean
}

/**
 * A stream of server-sent events. The first event sends the response headers with status 200. Until then, a different
 * reply can be sent.
 */
interface EventReply {
  readonly begun: boolean
  /** Sends the text of events. Empty text sends nothing. */
  send(events: string): Promise<void>
  end(): void
}

/** Creates a reply whose errors have the format of `api`. `signal` must abort when the client disconnects. */
export function createReply(response: ServerResponse, signal: AbortSignal, api: ClientApi): Reply {
  async function write(data: string | Uint8Array): Promise<void> {
    if (response.destroyed || response.write(data)) return
    await once(response, "drain", { signal })
  }

  function sendJson(status: number, body: object, headers: Record<string, string> = {}): void {
    if (response.destroyed) return
    response.writeHead(status, { "content-type": "application/json", ...headers })
    response.end(JSON.stringify(body))
  }

  function writeHead(from: Response): void {
    const kept = passedBack.flatMap((name) => {
      const value = from.headers.get(name)
      return value === null ? [] : [[name, value]]
    })
    response.writeHead(from.status, Object.fromEntries(kept))
  }

  return {
    get begun() {
      return response.headersSent
    },
    sendJson,
    sendError: (error) => sendJson(error.status, api.errorBody(error), error.headers),
    sendText(from, text) {
      writeHead(from)
      response.end(text)
    },
    async pipe(from) {
      writeHead(from)
      if (from.body) for await (const chunk of from.body) await write(chunk)
      response.end()
    },
    events: () => ({
      get begun() {
        return response.headersSent
      },
      async send(events) {
        if (events === "") return
        if (!response.headersSent) response.writeHead(200, eventHeaders)
        await write(events)
      },
      end: () => void response.end(),
    }),
  }
}

const eventHeaders = { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache" }

/**
 * Headers that are forwarded to the client. Headers for length and encoding are not forwarded, because they apply
 * only to the connection to the upstream.
 */
const passedBack = [
  "content-type",
  "cache-control",
  "retry-after",
  "retry-after-ms",
  "x-request-id",
  "openai-processing-ms",
  "x-ratelimit-limit-requests",
  "x-ratelimit-limit-tokens",
  "x-ratelimit-remaining-requests",
  "x-ratelimit-remaining-tokens",
  "x-ratelimit-reset-requests",
  "x-ratelimit-reset-tokens",
]

import { randomUUID } from "node:crypto"
import {
  SUPPORTED_PROTOCOL_VERSIONS,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server"
import { type ConnectionOptions, openConnection } from "./connection.ts"
import { jsonRefusal } from "./guard.ts"
import { createSentMessages } from "./sent-messages.ts"

/** How many clients there may be, for how long, and what each is offered. */
export interface HttpSessionOptions {
  connection: ConnectionOptions
  /** How long a session is kept without an open request, in milliseconds. */
  idleMs: number
  /** No more clients are served at once. */
  maxSessions: number
}

/** The sessions of all clients, each with a standing of its own. */
export interface HttpSessions {
  /** Answers a request by its session, or opens one. `gone` resolves when the exchange is over. */
  handle(request: Request, gone: Promise<void>): Promise<Response>
  /** Ends every session and its calls. */
  close(): Promise<void>
}

interface HttpSession {
  transport: WebStandardStreamableHTTPServerTransport
  /** What was agreed on when it was opened. */
  version(): string | undefined
  /** Requests that are being answered, streams among them. */
  open: number
  timer?: NodeJS.Timeout
  end(): Promise<void>
}

/** How soon a client comes back for the rest of a stream that ended, in milliseconds. */
const comeBackMs = 1000

/** Sessions as the protocol has them over HTTP: opened by `initialize`, named by a header, ended by `DELETE` or idleness. */
export function createHttpSessions({ connection, idleMs, maxSessions }: HttpSessionOptions): HttpSessions {
  const sessions = new Map<string, HttpSession>()
  const endings = new Set<Promise<void>>()

  /** A session counts from the `initialize` that the transport takes; any other first message it refuses. */
  async function open(): Promise<HttpSession> {
    const id = randomUUID()
    const client = openConnection(connection)
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => id,
      onsessioninitialized: () => void sessions.set(id, session),
      eventStore: createSentMessages(),
      retryInterval: comeBackMs,
    })
    let ended: Promise<void> | undefined
    const session: HttpSession = {
      transport,
      version: () => client.server.getNegotiatedProtocolVersion(),
      open: 0,
      end() {
        ended ??= finish(id, session, client.close())
        return ended
      },
    }
    client.server.onclose = () => void session.end()
    await client.server.connect(transport)
    return session
  }

  async function finish(id: string, session: HttpSession, closing: Promise<void>): Promise<void> {
    sessions.delete(id)
    clearTimeout(session.timer)
    const ending = closing.catch((error: unknown) =>
      connection.onProblem("an MCP session did not end in order", error),
    )
    endings.add(ending)
    await ending
    endings.delete(ending)
  }

  function hold(session: HttpSession, gone: Promise<void>): void {
    session.open += 1
    clearTimeout(session.timer)
    void gone.then(() => {
      session.open -= 1
      if (session.open > 0) return
      // One that was never initialized has nobody who could come back to it.
      if (![...sessions.values()].includes(session)) return session.end()
      session.timer = setTimeout(() => void session.end(), idleMs)
      session.timer.unref()
    })
  }

  return {
    async handle(request, gone) {
      const id = request.headers.get("mcp-session-id")
      const known = id === null ? undefined : sessions.get(id)
      if (id !== null && !known)
        return jsonRefusal(404, "There is no such session: it has ended. Initialize anew.")
      if (!known && request.method !== "POST") return jsonRefusal(400, "Initialize a session first.")
      if (!known && sessions.size >= maxSessions)
        return jsonRefusal(503, `No more than ${maxSessions} clients are served at once.`)
      const session = known ?? (await open())
      hold(session, gone)
      return await session.transport.handleRequest(withVersion(request, session.version()))
    },
    async close() {
      await Promise.all([...sessions.values()].map((session) => session.end()))
      await Promise.all(endings)
    },
  }
}

/**
 * What the client understands was agreed on when the session was opened. A header that says otherwise counts where the
 * protocol refuses it, and for nothing else.
 */
function withVersion(request: Request, version: string | undefined): Request {
  const named = request.headers.get(versionHeader)
  if (version === undefined || (named !== null && !SUPPORTED_PROTOCOL_VERSIONS.includes(named)))
    return request
  const headers = new Headers(request.headers)
  headers.set(versionHeader, version)
  return new Request(request, { headers })
}

const versionHeader = "mcp-protocol-version"

import { randomUUID } from "node:crypto"
import {
  type EventStore,
  SUPPORTED_PROTOCOL_VERSIONS,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server"
import { type ConnectionOptions, openConnection } from "./connection.ts"

/** The session limits, and the connection options for each client. */
export interface HttpSessionOptions {
  connection: ConnectionOptions
  /** Time in milliseconds after which a session without an open request ends. */
  idleMs: number
  maxSessions: number
}

/** The HTTP sessions of all clients. */
export interface HttpSessions {
  /**
   * Handles a request in an existing session. If the request specifies no session, opens a session for it. `gone` must
   * resolve when the client has disconnected or the response has been sent.
   */
  handle(request: Request, gone: Promise<void>): Promise<Response>
  /** Ends all sessions and their calls. */
  close(): Promise<void>
}

interface HttpSession {
  transport: WebStandardStreamableHTTPServerTransport
  /** Returns the negotiated protocol version. */
  version(): string | undefined
  /** Number of open requests and streams. */
  open: number
  timer?: NodeJS.Timeout
  end(): Promise<void>
}

/** Time in milliseconds that a client should wait before it reconnects after a stream ends. */
const reconnectMs = 1000

/**
 * Creates the protocol's HTTP sessions. `initialize` opens a session, a header identifies it, and `DELETE` or the idle
 * timeout ends it.
 */
export function createHttpSessions({ connection, idleMs, maxSessions }: HttpSessionOptions): HttpSessions {
  const sessions = new Map<string, HttpSession>()
  const endings = new Set<Promise<void>>()

  /**
   * Opens a session. The session is registered when the transport accepts `initialize`. The transport rejects any first
   * message other than `initialize`.
   */
  async function open(): Promise<HttpSession> {
    const id = randomUUID()
    const client = openConnection(connection)
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => id,
      onsessioninitialized: () => void sessions.set(id, session),
      eventStore: createEventStore(),
      retryInterval: reconnectMs,
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
      connection.onProblem("an MCP session did not end cleanly", error),
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
      // A session that was not initialized cannot be resumed.
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
        return errorResponse(404, "The session is unknown or has ended. Initialize a new session.")
      if (!known && request.method !== "POST") return errorResponse(400, "Initialize a session first.")
      if (!known && sessions.size >= maxSessions)
        return errorResponse(
          503,
          `The limit of ${maxSessions} clients has been reached. End another client's session, or try again later.`,
        )
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

/** Returns a protocol error that is not a response to a specific request. */
export function errorResponse(
  status: number,
  message: string,
  headers: Record<string, string> = {},
): Response {
  return Response.json({ jsonrpc: "2.0", error: { code: -32000, message }, id: null }, { status, headers })
}

const versionHeader = "mcp-protocol-version"

/**
 * Replaces the version header with the negotiated version. Keeps an unsupported version, because the protocol requires
 * a request with that version to fail.
 */
function withVersion(request: Request, version: string | undefined): Request {
  const named = request.headers.get(versionHeader)
  if (version === undefined || (named !== null && !SUPPORTED_PROTOCOL_VERSIONS.includes(named)))
    return request
  const headers = new Headers(request.headers)
  headers.set(versionHeader, version)
  return new Request(request, { headers })
}

type Message = Parameters<EventStore["storeEvent"]>[1]

/** Limits for the messages kept for one session. `bytes` is the length of the messages as JSON, in UTF-16 units. */
interface EventLimits {
  messages: number
  bytes: number
}

/**
 * Default limits. Long output is about 50 KB. A message that exceeds the limit, such as a picture, is kept alone.
 */
const defaultLimits: EventLimits = { messages: 500, bytes: 4 * 1024 * 1024 }

/**
 * Creates a store for the latest messages to one client, so that the client can resume a broken stream. The store drops
 * the oldest messages first and always keeps the newest message. A client cannot resume if the last message that it
 * received was dropped, because it could miss messages.
 */
export function createEventStore(limits: EventLimits = defaultLimits): Required<EventStore> {
  let kept: { id: string; stream: string; message: Message; bytes: number }[] = []
  let bytes = 0

  function dropOldest(): void {
    let surplus = 0
    while (surplus < kept.length - 1 && (kept.length - surplus > limits.messages || bytes > limits.bytes)) {
      bytes -= kept[surplus]?.bytes ?? 0
      surplus += 1
    }
    if (surplus > 0) kept = kept.slice(surplus)
  }

  return {
    async storeEvent(stream, message) {
      const id = randomUUID()
      const size = JSON.stringify(message).length
      kept.push({ id, stream, message, bytes: size })
      bytes += size
      dropOldest()
      return id
    },
    async getStreamIdForEventId(id) {
      return kept.find((entry) => entry.id === id)?.stream
    },
    async replayEventsAfter(lastID, { send }) {
      const at = kept.findIndex(({ id }) => id === lastID)
      const last = kept[at]
      if (!last)
        throw new Error(
          "The stream cannot be resumed: the last message that the client received is no longer stored.",
        )
      for (const { id, stream, message } of kept.slice(at + 1)) {
        // The first event of a stream has no content.
        if (stream === last.stream && "jsonrpc" in message) await send(id, message)
      }
      return last.stream
    },
  }
}

import {
  InsufficientScopeError,
  type JSONRPCErrorResponse,
  ProtocolError,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  SSEClientTransport,
  StreamableHTTPClientTransport,
  type Transport,
} from "@modelcontextprotocol/client"
import { createLineSplitter } from "../../files/line-splitter.ts"
import { within } from "../../util/abort.ts"
import { errorMessage } from "../../util/errors.ts"
import { isRecord, parseJson } from "../../util/json.ts"
import type { RemoteServer } from "./config.ts"
import { McpSignInError } from "./errors.ts"
import type { Authorizer } from "./oauth/authorizer.ts"
import { createOpenRequests, maxMessageLength, type OpenRequests } from "./open-requests.ts"
import type { ServerTransport } from "./transport.ts"

/** Time limit for the request that ends the session, in milliseconds. */
const shutdownMs = 500

/** Status codes with which a server of the older transport answers a POST request, as the protocol defines them. */
const unsupportedStatus: ReadonlySet<number> = new Set([400, 404, 405])

/**
 * Creates a streamable HTTP transport. Sends the configured headers with every request. Follows redirects only within
 * the origin.
 */
export function createHttpTransport(
  { url, headers = {} }: RemoteServer,
  authorizer?: Authorizer,
): ServerTransport {
  const requests = createOpenRequests()
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers },
    fetch: watchingEvents(requests, {
      onReply: (reply) => transport.onmessage?.(reply),
      onEnd({ request, resumes }) {
        if (request === undefined || resumes) return
        const reply = requests.fail(
          request,
          "it ended its response without a reply to the call. The call may have taken effect.",
        )
        if (reply) transport.onmessage?.(reply)
      },
    }),
    onInsufficientScope: "throw",
    authProvider: authorizer,
  })
  const close = transport.close.bind(transport)
  return Object.assign(withErrors(transport, requests, authorizer), {
    async close() {
      if (transport.sessionId !== undefined)
        await within(
          transport.terminateSession().catch(() => {}),
          shutdownMs,
        )
      await close()
    },
  })
}

/** Creates the protocol's older HTTP transport, which receives an event stream and sends each message as a POST. */
export function createSseTransport(
  { url, headers = {} }: RemoteServer,
  authorizer?: Authorizer,
): ServerTransport {
  const requests = createOpenRequests()
  const transport = new SSEClientTransport(new URL(url), {
    requestInit: { headers },
    fetch: watchingEvents(requests, {
      onReply: (reply) => transport.onmessage?.(reply),
      // Without the stream, the server ends the session, so running calls receive no reply.
      onEnd: () => void transport.close(),
    }),
    authProvider: authorizer,
  })
  return withErrors(transport, requests, authorizer)
}

/** The end of an event stream. */
interface StreamEnd {
  /** Id of the request that the stream answers. */
  request: unknown
  /** Whether the client can continue the stream in a new request. */
  resumes: boolean
}

/** Creates a `fetch` that watches event streams for malformed replies, which the SDK drops, and for their end. */
function watchingEvents(
  requests: OpenRequests,
  { onReply, onEnd }: { onReply(reply: JSONRPCErrorResponse): void; onEnd(end: StreamEnd): void },
): typeof fetch {
  return async (input, init) => {
    const response = await fetch(input, init)
    const type = response.headers.get("content-type") ?? ""
    const end: StreamEnd = { request: requestIn(init?.body), resumes: false }
    // Does not check JSON bodies, because the SDK itself rejects a malformed reply in a JSON body.
    if (/^application\/json\b/i.test(type)) requests.fail(end.request, "")
    if (!response.body || !response.ok || !/^text\/event-stream\b/i.test(type)) return response
    let data: string[] = []
    const lines = createLineSplitter(maxMessageLength, (line, length) => {
      const [, field, value = ""] = /^(data|id): ?(.*)$/s.exec(line) ?? []
      if (field === "id" && value !== "") end.resumes = true
      if (field === "data" && length === line.length) data.push(value)
      if (line !== "" || data.length === 0) return
      const text = data.join("\n")
      data = []
      const reply = requests.read(text) ? undefined : requests.reject(text)
      if (reply) onReply(reply)
    })
    const decoder = new TextDecoder()
    const body = watchedStream(response.body, {
      onChunk: (chunk) => lines.push(decoder.decode(chunk, { stream: true })),
      onEnd: () => onEnd(end),
    })
    const { status, statusText, headers } = response
    return new Response(body, { status, statusText, headers })
  }
}

function requestIn(body: unknown): unknown {
  const parsed = typeof body === "string" ? parseJson(body) : undefined
  return parsed?.ok && isRecord(parsed.value) && "method" in parsed.value ? parsed.value.id : undefined
}

/** Passes a stream through. Calls `onEnd` when the stream ends or fails, but not when it is canceled. */
function watchedStream(
  stream: ReadableStream<Uint8Array<ArrayBuffer>>,
  { onChunk, onEnd }: { onChunk(chunk: Uint8Array): void; onEnd(): void },
): ReadableStream<Uint8Array<ArrayBuffer>> {
  const reader = stream.getReader()
  return new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await reader.read()
        if (done) {
          onEnd()
          controller.close()
        } else {
          onChunk(value)
          controller.enqueue(value)
        }
      } catch (error) {
        onEnd()
        controller.error(error)
      }
    },
    cancel: (reason) => reader.cancel(reason),
  })
}

function withErrors<T extends Transport>(
  transport: T,
  requests: OpenRequests,
  authorizer?: Authorizer,
): T & ServerTransport {
  const plain = transport.send.bind(transport)
  const send: Transport["send"] = async (message, options) => {
    requests.sent(message)
    try {
      await plain(message, options)
    } catch (error) {
      if (authorizer && error instanceof InsufficientScopeError) authorizer.onInsufficientScope(error)
      throw error
    }
  }
  return Object.assign(transport, { send, explain, isLost, isUnsupported })
}

function explain(error: unknown): string {
  const status = error instanceof SdkHttpError ? error.status : undefined
  if (status === 401 || status === 403)
    return `it returned ${status}. Change the key under "headers" in the configuration, or sign in (\`tackle mcp auth\`).`
  // The message of a fetch error only says that the request failed. The cause contains the reason.
  const cause = error instanceof Error && error.cause !== undefined ? `: ${errorMessage(error.cause)}` : ""
  return `${errorMessage(error)}${cause}`
}

/**
 * Returns true for an error that ends the session, for example because the server restarts. An error response or a
 * timeout leaves the session intact.
 */
function isLost(error: unknown): boolean {
  if (error instanceof ProtocolError || error instanceof McpSignInError) return false
  return !(error instanceof SdkError && error.code === SdkErrorCode.RequestTimeout)
}

function isUnsupported(error: unknown): boolean {
  return error instanceof SdkHttpError && unsupportedStatus.has(error.status)
}

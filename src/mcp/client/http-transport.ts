import {
  InsufficientScopeError,
  ProtocolError,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  SSEClientTransport,
  StreamableHTTPClientTransport,
  type Transport,
} from "@modelcontextprotocol/client"
import { within } from "../../util/abort.ts"
import { errorMessage } from "../../util/errors.ts"
import type { RemoteServer } from "./config.ts"
import { McpSignInError } from "./errors.ts"
import type { Authorizer } from "./oauth/authorizer.ts"
import type { ServerTransport } from "./transport.ts"

/** Time limit for the request that ends the session, in milliseconds. */
const shutdownMs = 500

/** Status codes with which a server of the older transport answers a POST, according to the protocol. */
const unsupportedStatus: ReadonlySet<number> = new Set([400, 404, 405])

/**
 * Creates a streamable HTTP transport. Sends the configured headers with every request. Follows redirects only within
 * the origin.
 */
export function createHttpTransport(
  { url, headers = {} }: RemoteServer,
  authorizer?: Authorizer,
): ServerTransport {
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers },
    onInsufficientScope: "throw",
    authProvider: authorizer,
  })
  const close = transport.close.bind(transport)
  return Object.assign(withErrors(transport, authorizer), {
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
  const transport = new SSEClientTransport(new URL(url), {
    requestInit: { headers },
    authProvider: authorizer,
  })
  return withErrors(transport, authorizer)
}

function withErrors<T extends Transport>(transport: T, authorizer?: Authorizer): T & ServerTransport {
  const plain = transport.send.bind(transport)
  const send: Transport["send"] = async (message, options) => {
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
    return `it answered ${status}. Change the key under "headers" in the configuration, or sign in (\`tackle mcp auth\`).`
  // The message of a fetch error only says that the request failed. The cause contains the reason.
  const cause = error instanceof Error && error.cause !== undefined ? `: ${errorMessage(error.cause)}` : ""
  return `${errorMessage(error)}${cause}`
}

/**
 * Returns false for an error response and for a timeout, which leave the session intact. Other errors end it, for
 * example when the server restarts.
 */
function isLost(error: unknown): boolean {
  if (error instanceof ProtocolError || error instanceof McpSignInError) return false
  return !(error instanceof SdkError && error.code === SdkErrorCode.RequestTimeout)
}

function isUnsupported(error: unknown): boolean {
  return error instanceof SdkHttpError && unsupportedStatus.has(error.status)
}

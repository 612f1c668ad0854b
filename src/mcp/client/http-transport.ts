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

/** How long a server may take to forget the session that we are done with. In milliseconds. */
const goodbyeMs = 500

/** With these a server of the older transport answers a POST, as the protocol has it. */
const foreignStatus: ReadonlySet<number> = new Set([400, 404, 405])

/** Streamable HTTP. The headers go with every request, and to no other origin: redirects are followed only within it. */
export function createHttpTransport(
  { url, headers = {} }: RemoteServer,
  authorizer?: Authorizer,
): ServerTransport {
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers },
    onInsufficientScope: "throw",
    ...(authorizer ? { authProvider: authorizer } : {}),
  })
  const close = transport.close.bind(transport)
  return Object.assign(withFaults(transport, authorizer), {
    async close() {
      // It is over whatever the server says to it.
      if (transport.sessionId !== undefined)
        await within(
          transport.terminateSession().catch(() => {}),
          goodbyeMs,
        )
      await close()
    },
  })
}

/** The transport of the protocol's first version: one stream of events, and a POST for each message. Headers as above. */
export function createSseTransport(
  { url, headers = {} }: RemoteServer,
  authorizer?: Authorizer,
): ServerTransport {
  const transport = new SSEClientTransport(new URL(url), {
    requestInit: { headers },
    ...(authorizer ? { authProvider: authorizer } : {}),
  })
  return withFaults(transport, authorizer)
}

function withFaults<T extends Transport>(transport: T, authorizer?: Authorizer): T & ServerTransport {
  const plain = transport.send.bind(transport)
  const send: Transport["send"] = async (message, options) => {
    try {
      await plain(message, options)
    } catch (error) {
      if (authorizer && error instanceof InsufficientScopeError) authorizer.onInsufficientScope(error)
      throw error
    }
  }
  return Object.assign(transport, { send, explain, isLost, isForeign })
}

function explain(error: unknown): string {
  const status = error instanceof SdkHttpError ? error.status : undefined
  if (status === 401 || status === 403)
    return `it answered ${status}. It wants another key than the one under "headers" in the configuration, or you to sign in (\`tackle mcp auth\`).`
  // What fetch throws says only that it failed; the reason is behind it.
  const cause = error instanceof Error && error.cause !== undefined ? `: ${errorMessage(error.cause)}` : ""
  return `${errorMessage(error)}${cause}`
}

/** An answer, or a silence, leaves the session as it was; all else ends it, such as a server that was started anew. */
function isLost(error: unknown): boolean {
  if (error instanceof ProtocolError || error instanceof McpSignInError) return false
  return !(error instanceof SdkError && error.code === SdkErrorCode.RequestTimeout)
}

function isForeign(error: unknown): boolean {
  return error instanceof SdkHttpError && foreignStatus.has(error.status)
}

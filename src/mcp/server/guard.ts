import { hostHeaderValidationResponse, originValidationResponse } from "@modelcontextprotocol/server"
import { isAuthorized, isLoopback, loopbackHosts } from "../../util/local-server.ts"

/** What requests are held against. */
export interface GuardOptions {
  /** What a client has to send as `Authorization: Bearer`. Undefined: nothing. */
  key: string | undefined
  /** The address that is listened on. */
  host: string
}

/**
 * The answer to a request that must not be served; undefined for one that may. A page in a browser can have its own
 * domain lead here, and then names that: as `Host` where this machine alone is served, and as `Origin` in any case.
 */
export function refusalOf(request: Request, { key, host }: GuardOptions): Response | undefined {
  const names = isLoopback(host) ? [...loopbackHosts] : undefined
  const foreign =
    (names && hostHeaderValidationResponse(request, names)) ??
    originValidationResponse(request, [...loopbackHosts])
  if (foreign) return foreign
  if (key === undefined || isAuthorized(request.headers.get("authorization"), key)) return undefined
  return jsonRefusal(401, "The key is missing or wrong. Send it as Authorization: Bearer.", {
    "www-authenticate": "Bearer",
  })
}

/** A refusal as the protocol has errors that belong to no request. */
export function jsonRefusal(status: number, message: string, headers: Record<string, string> = {}): Response {
  return Response.json({ jsonrpc: "2.0", error: { code: -32000, message }, id: null }, { status, headers })
}

import { hostHeaderValidationResponse, originValidationResponse } from "@modelcontextprotocol/server"
import { isSameSecret } from "../util/same-secret.ts"

export interface GuardOptions {
  /** What a client has to send as `Authorization: Bearer`. Undefined: nothing. */
  key: string | undefined
  /** The address that is listened on. */
  host: string
}

/** Names by which a program on this machine calls it. */
const ownNames = ["127.0.0.1", "localhost", "[::1]"]

/** True for an address that only this machine reaches. */
export function isLoopback(host: string): boolean {
  return host === "127.0.0.1" || host === "localhost" || host === "::1"
}

/**
 * The answer to a request that must not be served; undefined for one that may. A page in a browser can have its own
 * domain lead here, and then names that: as `Host` where this machine alone is served, and as `Origin` in any case.
 */
export function refusalOf(request: Request, { key, host }: GuardOptions): Response | undefined {
  const names = isLoopback(host) ? ownNames : undefined
  const foreign =
    (names && hostHeaderValidationResponse(request, names)) ?? originValidationResponse(request, ownNames)
  if (foreign) return foreign
  if (key === undefined || isSameSecret(request.headers.get("authorization") ?? "", `Bearer ${key}`))
    return undefined
  return jsonRefusal(401, "The key is missing or wrong. Send it as Authorization: Bearer.", {
    "www-authenticate": "Bearer",
  })
}

/** A refusal as the protocol has errors that belong to no request. */
export function jsonRefusal(status: number, message: string, headers: Record<string, string> = {}): Response {
  return Response.json({ jsonrpc: "2.0", error: { code: -32000, message }, id: null }, { status, headers })
}

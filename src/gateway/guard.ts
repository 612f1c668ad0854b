import type { IncomingMessage } from "node:http"
import { isAuthorized, loopbackHosts } from "../util/local-server.ts"
import { GatewayError } from "./errors.ts"

/** What every request is held against. */
export interface GuardOptions {
  /** What a client has to send as `Authorization: Bearer`. Undefined: nothing. */
  key: string | undefined
  /** Of a request. A longer one is refused with status 413. */
  maxBodyBytes: number
}

/**
 * Throws `GatewayError` for a request that must not be served. Without a key only a client that names this machine is:
 * a page in a browser can have its own domain lead here, and then names that.
 */
export function assertAllowed({ headers, method }: IncomingMessage, { key }: GuardOptions): void {
  if (key !== undefined && !isAuthorized(headers.authorization, key)) {
    throw new GatewayError("The key is missing or wrong. Send the gateway's own as the API key.", {
      status: 401,
      label: "invalid_api_key",
    })
  }
  const host = (headers.host ?? "").replace(/:\d+$/, "").toLowerCase()
  if (key === undefined && !loopbackHosts.includes(host)) {
    throw new GatewayError(`Requests for the host "${host}" are not served. Use 127.0.0.1 or localhost.`, {
      status: 403,
      label: "wrong_host",
    })
  }
  // Any page may send a form or plain text to any address; for JSON a browser asks first, and gets no leave here.
  if (method === "POST" && !/^application\/json\b/i.test(headers["content-type"] ?? "")) {
    throw new GatewayError("The body has to be sent as application/json.", {
      status: 415,
      label: "unsupported_media_type",
    })
  }
}

/** The body as text. Rejects with `GatewayError` where it is too long; what follows is then not read. */
export async function readBody(incoming: IncomingMessage, { maxBodyBytes }: GuardOptions): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  // Not destroyed where it is left early: the answer goes out on the same connection.
  const arriving: AsyncIterable<Buffer> = incoming.iterator({ destroyOnReturn: false })
  for await (const chunk of arriving) {
    bytes += chunk.length
    if (bytes > maxBodyBytes) {
      throw new GatewayError(`The body is longer than ${maxBodyBytes} bytes.`, {
        status: 413,
        label: "body_too_large",
        headers: { connection: "close" },
      })
    }
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString("utf8")
}

import type { IncomingMessage } from "node:http"
import { isAuthorized, isLoopbackOrigin, loopbackHosts } from "../util/local-server.ts"
import { GatewayError } from "./errors.ts"

/** Requirements for every request. */
export interface GuardOptions {
  /** Key that clients must send as `Authorization: Bearer` or `x-api-key`. Undefined if no key is required. */
  key: string | undefined
  /** Maximum size of a request body in bytes. A larger body is rejected with status 413. */
  maxBodyBytes: number
}

/**
 * Throws `GatewayError` if the request does not contain the required key, if its `Origin` header (which browsers send)
 * names another machine, or if the content type of a POST request is not JSON. If no key is required, the `Host` header
 * must also name this machine, because a web page can make its own domain resolve to this machine.
 */
export function assertAllowed({ headers, method }: IncomingMessage, { key }: GuardOptions): void {
  if (key !== undefined && !sentKeys(headers).some((sent) => isAuthorized(sent, key))) {
    throw new GatewayError("The API key is missing or wrong. Send the gateway's key as the API key.", {
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
  if (headers.origin !== undefined && !isLoopbackOrigin(headers.origin)) {
    throw new GatewayError("The gateway rejects requests from web pages on other hosts.", {
      status: 403,
      label: "wrong_origin",
    })
  }
  // A web page can send a form or plain text to any address. Before it sends JSON, a browser sends a preflight request,
  // which the gateway rejects.
  if (method === "POST" && !/^application\/json\b/i.test(headers["content-type"] ?? "")) {
    throw new GatewayError("Send the body as application/json.", {
      status: 415,
      label: "unsupported_media_type",
    })
  }
}

/** Returns the keys of a request in the format of an `Authorization` header. Anthropic's clients send `x-api-key`. */
export function sentKeys({ authorization, "x-api-key": own }: IncomingMessage["headers"]): string[] {
  const bearer = typeof own === "string" ? `Bearer ${own}` : undefined
  return [authorization, bearer].filter((sent) => sent !== undefined)
}

/** Reads the body as text. Rejects with `GatewayError` if the body is too long, without reading the rest. */
export async function readBody(incoming: IncomingMessage, { maxBodyBytes }: GuardOptions): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  // Leaving the loop early must not destroy the stream, because the answer uses the same connection.
  const arriving: AsyncIterable<Buffer> = incoming.iterator({ destroyOnReturn: false })
  for await (const chunk of arriving) {
    bytes += chunk.length
    if (bytes > maxBodyBytes) {
      throw new GatewayError(
        `The body is longer than ${maxBodyBytes} bytes. Send a shorter history or smaller files.`,
        {
          status: 413,
          label: "body_too_large",
          headers: { connection: "close" },
        },
      )
    }
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString("utf8")
}

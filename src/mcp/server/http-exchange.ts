import type { IncomingMessage, ServerResponse } from "node:http"
import { Readable } from "node:stream"
import { pipeline } from "node:stream/promises"

/** A request of Node's server as the web has them. Its signal fires when the client goes away. */
export function toWebRequest(incoming: IncomingMessage, signal: AbortSignal): Request {
  const { method = "GET", headers } = incoming
  const given = new Headers()
  for (const [name, value] of Object.entries(headers)) {
    for (const part of [value ?? []].flat()) given.append(name, part)
  }
  // Whom the client means stands in `Host`, which is judged by itself.
  const url = new URL(incoming.url ?? "/", "http://localhost")
  if (method === "GET" || method === "HEAD") return new Request(url, { method, headers: given, signal })
  const body = Readable.toWeb(incoming) as ReadableStream<Uint8Array>
  return new Request(url, { method, headers: given, signal, body, duplex: "half" })
}

/** Sends an answer, piece by piece. Resolves when it is out or the client went away. */
export async function sendWebResponse(answer: Response, response: ServerResponse): Promise<void> {
  response.writeHead(answer.status, Object.fromEntries(answer.headers))
  if (!answer.body) {
    response.end()
    return
  }
  response.flushHeaders()
  try {
    await pipeline(Readable.fromWeb(answer.body), response)
  } catch (error) {
    // A client that goes away is an ordinary end of an exchange.
    if (!response.destroyed) throw error
  }
}

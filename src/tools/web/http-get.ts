import type { LookupAddress } from "node:dns"
import { type IncomingHttpHeaders, type IncomingMessage, request as plainRequest } from "node:http"
import type { LookupFunction } from "node:net"
import { pipeline, type Readable, type Transform } from "node:stream"
import { abortedError } from "../../util/abort.ts"
import { errorMessage } from "../../util/errors.ts"
import { WebfetchError } from "./webfetch-error.ts"

/** A request for a page. */
export interface GetRequest {
  url: URL
  /** Addresses to connect to. Must not be empty. The host name is not resolved again. */
  addresses: readonly LookupAddress[]
  headers: Record<string, string>
  /** Maximum size of the body after decompression, in bytes. */
  maxBytes: number
  signal: AbortSignal
}

/** A response. The body of a redirect is not read. */
export interface GetAnswer {
  status: number
  headers: IncomingHttpHeaders
  body: Buffer
}

/**
 * Sends a GET request over a new connection to one of the given addresses. Checks certificates against the host name.
 * Does not follow redirects. Throws {@link WebfetchError} if the host is unreachable, if the transfer fails, or if the
 * body exceeds `maxBytes` or has an unsupported encoding. Throws the error that `abortedError` returns if the signal
 * aborts.
 */
export async function httpGet(request: GetRequest): Promise<GetAnswer> {
  const { url, signal } = request
  try {
    const response = await send(request)
    const { statusCode: status = 0, headers } = response
    if (status >= 300 && status < 400 && headers.location !== undefined) {
      response.destroy()
      return { status, headers, body: Buffer.alloc(0) }
    }
    return { status, headers, body: await readBody(response, request) }
  } catch (error) {
    if (signal.aborted) throw abortedError(signal)
    if (error instanceof WebfetchError) throw error
    throw new WebfetchError("network", `Cannot fetch ${url}: ${errorMessage(error)}.`, error)
  }
}

async function send({ url, addresses, headers, signal }: GetRequest): Promise<IncomingMessage> {
  const start = url.protocol === "https:" ? (await import("node:https")).request : plainRequest
  return new Promise((resolve, reject) => {
    // No agent, because a shared connection could lead to an address that was not checked.
    start(url, { agent: false, lookup: lookupIn(addresses), headers, signal })
      .once("response", resolve)
      .on("error", reject)
      .end()
  })
}

/** Returns a lookup function that yields only the checked addresses. */
function lookupIn(addresses: readonly LookupAddress[]): LookupFunction {
  return (_, { all }, callback) => {
    const [first] = addresses
    if (all) callback(null, [...addresses])
    else callback(null, first?.address ?? "", first?.family)
  }
}

async function readBody(
  response: IncomingMessage,
  { url, maxBytes }: Pick<GetRequest, "url" | "maxBytes">,
): Promise<Buffer> {
  const tooLarge = () => {
    response.destroy()
    return new WebfetchError(
      "size",
      `${url} is larger than ${maxBytes} bytes. Fetch a smaller page, or download it with bash and read parts of it.`,
    )
  }
  if (Number(response.headers["content-length"] ?? 0) > maxBytes) throw tooLarge()
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of await decoded(response, url)) {
    bytes += chunk.length
    if (bytes > maxBytes) throw tooLarge()
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** Value of the `accept-encoding` header: the encodings that {@link decoded} supports. */
export const acceptedEncodings = "gzip, deflate, br"

async function decoded(response: IncomingMessage, url: URL): Promise<Readable> {
  const encoding = response.headers["content-encoding"]?.trim().toLowerCase() || "identity"
  if (encoding === "identity") return response
  const { createBrotliDecompress, createGunzip, createInflate } = await import("node:zlib")
  const decoders = new Map<string, () => Transform>([
    ["gzip", createGunzip],
    ["x-gzip", createGunzip],
    ["deflate", createInflate],
    ["br", createBrotliDecompress],
  ])
  const decoder = decoders.get(encoding)?.()
  if (!decoder) {
    response.destroy()
    throw new WebfetchError(
      "content",
      `${url} has the unsupported content encoding "${encoding}". Continue without the page.`,
    )
  }
  // Ignores errors here. The code that reads from the decoder receives the errors from both streams.
  return pipeline(response, decoder, () => {})
}

import { type IncomingMessage, type RequestOptions, request as startPlain } from "node:http"
import type { Readable } from "node:stream"
import { text } from "node:stream/consumers"
import { systemCode } from "../util/errors.ts"

/**
 * Implements `fetch` over `node:http` for requests from provider packages. Their bodies are text or an array of
 * `Uint8Array`, and their headers are a record. Starts and runs faster than the global `fetch`: see
 * `docs/decisions/020-own-http-client.md`. Uses the proxies and certificates of the process and keeps connections
 * alive. Passes other requests and redirects to the global `fetch`. Rejects with a `TypeError` ("fetch failed") that
 * has a cause if no answer arrives, and with the signal's reason if the signal aborts.
 */
export const httpFetch: typeof fetch = async (input, init = {}) => {
  const request = plainRequest(input, init)
  if (request === undefined) return await fetch(input, init)
  request.signal?.throwIfAborted()
  const response = await send(request)
  const status = response.statusCode ?? 0
  if (status >= 300 && status < 400 && response.headers.location !== undefined) {
    response.destroy()
    // An array would become a stream, which cannot be sent again.
    const body = Array.isArray(init.body) ? Buffer.concat(init.body) : init.body
    return await fetch(input, { ...init, body })
  }
  return asResponse(request, response, await decoded(response))
}

interface PlainRequest {
  url: string
  method: string
  headers: Record<string, string>
  body: readonly Uint8Array[]
  /** Size of the body in bytes. */
  length: number
  signal: AbortSignal | undefined
}

/** Returns the parts of the request, or undefined if only the global `fetch` supports it. */
function plainRequest(input: string | URL | Request, init: RequestInit): PlainRequest | undefined {
  const { method = "GET", body = "", headers = {}, signal } = init
  if (typeof input !== "string" && !(input instanceof URL)) return undefined
  if (typeof body !== "string" && !isPieces(body)) return undefined
  if (Array.isArray(headers) || Symbol.iterator in headers) return undefined
  const url = String(input)
  if (!/^https?:/.test(url)) return undefined
  const pieces = typeof body === "string" ? [Buffer.from(body)] : body
  return {
    url,
    method,
    headers: headers as Record<string, string>,
    body: pieces,
    length: pieces.reduce((sum, { length }) => sum + length, 0),
    signal: signal ?? undefined,
  }
}

function isPieces(body: unknown): body is Uint8Array[] {
  return Array.isArray(body) && body.every((piece) => piece instanceof Uint8Array)
}

/** Sends the request. If the server closes a reused connection while the request is sent, repeats the request once. */
async function send(request: PlainRequest): Promise<IncomingMessage> {
  const start = request.url.startsWith("https:") ? (await import("node:https")).request : startPlain
  for (let attempt = 1; ; attempt += 1) {
    let reused = false
    try {
      return await new Promise<IncomingMessage>((resolve, reject) => {
        const outgoing = start(request.url, requestOptions(request))
        outgoing.once("response", resolve)
        outgoing.on("error", (error) => {
          reused = outgoing.reusedSocket
          reject(error)
        })
        outgoing.cork()
        for (const piece of request.body) if (piece.length > 0) outgoing.write(piece)
        outgoing.end()
      })
    } catch (error) {
      request.signal?.throwIfAborted()
      const stale = reused && attempt === 1 && /^(ECONNRESET|EPIPE)$/.test(systemCode(error) ?? "")
      if (!stale) throw new TypeError("fetch failed", { cause: error })
    }
  }
}

function requestOptions({ method, headers, length, signal }: PlainRequest): RequestOptions {
  return {
    method,
    headers: length === 0 ? headers : { ...headers, "content-length": length },
    signal,
  }
}

/** Decompresses the body. No request asks for compression, but some servers use it. */
async function decoded(response: IncomingMessage): Promise<Readable> {
  const encoding = response.headers["content-encoding"] ?? "identity"
  if (encoding === "identity") return response
  const { createGunzip, createInflate, createBrotliDecompress } = await import("node:zlib")
  const decoders = new Map([
    ["gzip", createGunzip],
    ["deflate", createInflate],
    ["br", createBrotliDecompress],
  ])
  const decoder = decoders.get(encoding)?.()
  if (decoder === undefined) {
    response.destroy()
    throw new TypeError("fetch failed", {
      cause: new Error(`The server sent the unsupported content encoding "${encoding}".`),
    })
  }
  response.once("error", (error) => decoder.destroy(error))
  decoder.once("close", () => response.destroy())
  return response.pipe(decoder)
}

/** Creates an object with the members of `Response` that provider packages use. */
function asResponse(
  { url, signal }: PlainRequest,
  { statusCode, statusMessage, headers }: IncomingMessage,
  content: Readable,
): Response {
  const status = statusCode ?? 0
  const body = asWebStream(content, signal)
  const response = {
    url,
    status,
    statusText: statusMessage ?? "",
    ok: status >= 200 && status < 300,
    headers: new Headers(
      Object.entries(headers).flatMap(([name, value]) =>
        value === undefined ? [] : [[name, String(value)] as const],
      ),
    ),
    body,
    text: () => text(body),
    json: async () => JSON.parse(await text(body)) as unknown,
  }
  return response as unknown as Response
}

/**
 * Minimum time in milliseconds between two chunks of a body. Text is shown 30 times per second, and each chunk passes
 * through the web streams of the provider package.
 */
const intervalMs = 33

/** Size in bytes at which a chunk is passed on immediately. */
const chunkBytes = 64 * 1024

/**
 * Converts a body to a web stream. Joins the data that arrives within `intervalMs` after a chunk. The first chunk and
 * the end of the body are passed on immediately.
 */
function asWebStream(body: Readable, signal: AbortSignal | undefined): ReadableStream<Uint8Array> {
  let waiting: Buffer[] = []
  let size = 0
  let due = 0
  let timer: NodeJS.Timeout | undefined
  let end: () => void

  return new ReadableStream({
    start(controller) {
      function deliver(): void {
        clearTimeout(timer)
        timer = undefined
        if (size === 0) return
        controller.enqueue(Buffer.concat(waiting))
        waiting = []
        size = 0
        due = performance.now() + intervalMs
        if ((controller.desiredSize ?? 0) <= 0) body.pause()
      }
      body.on("data", (chunk: Buffer) => {
        waiting.push(chunk)
        size += chunk.length
        const restMs = due - performance.now()
        if (restMs <= 0 || size >= chunkBytes) deliver()
        else timer ??= setTimeout(deliver, restMs)
      })
      end = () => {
        deliver()
        controller.close()
      }
      body.once("end", end)
      body.once("error", (error) => {
        clearTimeout(timer)
        controller.error(signal?.aborted ? signal.reason : error)
      })
    },
    pull: () => void body.resume(),
    cancel() {
      clearTimeout(timer)
      body.removeAllListeners("data").off("end", end)
      body.destroy()
    },
  })
}

/**
 * Implements the members of the global `Headers` that provider packages use. The bundled command replaces the global
 * class with this one (`scripts/bundle-command.ts`), because the first use of the global class loads Node's complete
 * `fetch` implementation.
 */
export class Headers implements Iterable<[string, string]> {
  readonly #values = new Map<string, string>()

  /** Throws `TypeError` for an invalid name or value. */
  constructor(init: Iterable<readonly [string, string]> | Readonly<Record<string, string>> = []) {
    for (const [name, value] of isIterable(init) ? init : Object.entries(init)) this.append(name, value)
  }

  append(name: string, value: string): void {
    const before = this.get(name)
    this.set(name, value)
    // Do not use `set`, which would trim the space before an empty value.
    if (before !== null) this.#values.set(name.toLowerCase(), `${before}, ${this.get(name)}`)
  }

  set(name: string, value: string): void {
    if (!isName.test(name)) throw new TypeError(`"${name}" is not a valid header name.`)
    const trimmed = String(value).trim()
    if (cannotBeSent.test(trimmed))
      throw new TypeError(`The ${name} header contains a character that cannot be sent.`)
    this.#values.set(name.toLowerCase(), trimmed)
  }

  get(name: string): string | null {
    return this.#values.get(name.toLowerCase()) ?? null
  }

  has(name: string): boolean {
    return this.#values.has(name.toLowerCase())
  }

  delete(name: string): void {
    this.#values.delete(name.toLowerCase())
  }

  forEach(visit: (value: string, name: string) => void): void {
    for (const [name, value] of this) visit(value, name)
  }

  entries(): ArrayIterator<[string, string]> {
    return [...this.#values].sort(([a], [b]) => (a < b ? -1 : 1)).values()
  }

  [Symbol.iterator](): ArrayIterator<[string, string]> {
    return this.entries()
  }
}

const isName = /^[!#$%&'*+\-.^_`|~\w]+$/
/** Line breaks, null characters, and characters outside Latin-1. */
const cannotBeSent = /[\0\r\n]|[^\0-\xff]/

function isIterable(init: object): init is Iterable<readonly [string, string]> {
  return Symbol.iterator in init
}

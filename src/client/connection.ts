import { abortReason, ClientError } from "./errors.ts"

/** Options for {@link createConnection}. */
export interface ConnectionOptions {
  /** Base URL of the server, such as `http://127.0.0.1:8486`. */
  url: string
  /** Bearer token. Undefined for a web page that is logged in with a cookie. */
  token?: string | undefined
  fetch?: typeof fetch | undefined
  /**
   * Time in milliseconds during which failed requests are repeated, if they are safe to repeat. In Node, the time
   * starts again if a connection breaks after at least one second.
   */
  retryMs: number
}

/** A request to the API. */
export interface ApiRequest {
  method?: "GET" | "POST" | "PATCH" | "DELETE"
  /** Path with encoded segments. */
  path: string
  /** Query parameters. Undefined values are omitted. */
  query?: Readonly<Record<string, string | number | boolean | undefined>>
  body?: unknown
  signal?: AbortSignal | undefined
  /**
   * Time limit in milliseconds for the start of the response. After this time, the connection counts as lost. Default:
   * 15,000 for a request that is safe to repeat, otherwise no limit.
   */
  answerMs?: number
  /** Whether sending the request twice has the same effect as sending it once. Default: true for GET. */
  isRepeatable?: boolean
  /** Whether the request is sent without waiting for streams that are being opened. Default: false. */
  isFirst?: boolean
}

/** A client's connection to its server. */
export interface Connection {
  /** Sends a request and returns the parsed JSON of the response. Throws {@link ClientError} if the request fails. */
  request<T>(request: ApiRequest): Promise<T>
  /** Opens an event stream without repeating a failed attempt. Throws {@link ClientError} if the attempt fails. */
  open(request: ApiRequest): Promise<Response>
  /**
   * Delays later requests until `opened` settles, except requests with `isFirst`. The stream that is being opened
   * therefore contains the events of the delayed requests.
   */
  opensFirst(opened: Promise<unknown>): void
  /** Resolves when each event stream that is being opened is open or has failed to open. */
  streamsOpened(): Promise<void>
}

/** Returns an API path with encoded segments. */
export function apiPath(...segments: string[]): string {
  return segments.map((segment) => `/${encodeURIComponent(segment)}`).join("")
}

/** Resolves like `answer`. If `answer` rejects with the given error code, resolves with undefined instead. */
export async function orUnknown<T>(code: string, answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer
  } catch (error) {
    if (error instanceof ClientError && error.code === code) return undefined
    throw error
  }
}

/**
 * Returns the delay in milliseconds after the nth failed attempt, counted from 1. The delay has a random part, so that
 * clients do not all retry at the same time.
 */
export function retryDelay(attempt: number): number {
  return Math.min(100 * 2 ** Math.min(attempt - 1, 10), 5_000) * (0.5 + Math.random() / 2)
}

/** Resolves after `ms`, or when the signal aborts. */
export async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms)
  const wake = () => resolve()
  signal?.addEventListener("abort", wake, { once: true })
  await promise
  clearTimeout(timer)
  signal?.removeEventListener("abort", wake)
}

/** Default {@link ApiRequest.answerMs} for a request that is safe to repeat. */
const defaultAnswerMs = 15_000

/** Creates a client's connection. Does not connect until the first request. */
export function createConnection(options: ConnectionOptions): Connection {
  const { token, retryMs } = options
  const base = options.url.replace(/\/+$/, "")
  const send = options.fetch ?? globalThis.fetch.bind(globalThis)
  const opening = new Set<Promise<unknown>>()

  async function attempt(wanted: ApiRequest): Promise<Response> {
    const { method = "GET", path, query = {}, body, signal, answerMs } = wanted
    const late = new AbortController()
    const timer = answerMs === undefined ? undefined : setTimeout(() => late.abort(), answerMs)
    const given = Object.entries(query).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, String(value)] as [string, string]],
    )
    const search = given.length === 0 ? "" : `?${new URLSearchParams(given)}`
    let response: Response
    try {
      response = await send(`${base}${path}${search}`, {
        method,
        headers: {
          ...(token !== undefined && { authorization: `Bearer ${token}` }),
          ...(body !== undefined && { "content-type": "application/json" }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        signal: signal ? AbortSignal.any([signal, late.signal]) : late.signal,
      })
    } catch (error) {
      throw signal?.aborted ? abortReason(signal) : unreachable(error)
    } finally {
      clearTimeout(timer)
    }
    if (response.ok) return response
    throw await errorOf(response)
  }

  /**
   * Sends the request and reads the response. Throws {@link ClientError} if the request fails or the connection breaks
   * while the response is read.
   */
  async function attemptJson<T>(request: ApiRequest): Promise<T> {
    const response = await attempt(request)
    let text: string
    try {
      text = await response.text()
    } catch (error) {
      throw request.signal?.aborted ? abortReason(request.signal) : unreachable(error)
    }
    return (text === "" ? undefined : parse(text, response)) as T
  }

  function unreachable(cause: unknown): ClientError {
    return new ClientError(
      `No response from the server ${base}. Check that the server is running, or start it with \`tackle serve\`.`,
      {
        code: "client.unreachable",
        cause,
      },
    )
  }

  async function request<T>(wanted: ApiRequest): Promise<T> {
    const { method = "GET", signal } = wanted
    const isRepeatable = wanted.isRepeatable ?? method === "GET"
    const answerMs = wanted.answerMs ?? (isRepeatable ? defaultAnswerMs : undefined)
    if (!wanted.isFirst) await streamsOpened()
    let deadline = Date.now() + retryMs
    for (let count = 1; ; count += 1) {
      const started = Date.now()
      try {
        return await attemptJson<T>({ ...wanted, ...(answerMs !== undefined && { answerMs }) })
      } catch (error) {
        if (signal?.aborted || !(error instanceof ClientError) || !canRetry(error, isRepeatable)) throw error
        if (wasHeld(error, Date.now() - started)) {
          deadline = Date.now() + retryMs
          count = 1
        }
        const delay = retryDelay(count)
        if (Date.now() + delay > deadline) throw error
        await pause(delay, signal)
        if (signal?.aborted) throw abortReason(signal)
      }
    }
  }

  async function streamsOpened(): Promise<void> {
    await Promise.all(opening)
  }

  return {
    request,
    open: attempt,
    streamsOpened,
    opensFirst(opened) {
      const settled: Promise<unknown> = opened.catch(() => undefined).finally(() => opening.delete(settled))
      opening.add(settled)
    },
  }
}

/** Time in milliseconds that a connection must last before it breaks to show that the server was available. */
const heldMs = 1_000

/**
 * Returns true if a server held the connection for a while before it broke, as in a long poll. `ms` is the request's
 * duration. Always false in browsers, because only Node reports the cause.
 */
function wasHeld({ cause }: ClientError, ms: number): boolean {
  const { code } = Object(Object(cause).cause) as { code?: unknown }
  return ms >= heldMs && (code === "ECONNRESET" || code === "UND_ERR_SOCKET")
}

/**
 * Returns true if the request can be sent again after this error: either the server did not process the request, or the
 * request is safe to repeat and the error may be temporary.
 */
export function canRetry({ code, status }: ClientError, isRepeatable: boolean): boolean {
  if (status === 429 || code === "server.stopping") return true
  if (!isRepeatable) return false
  return (
    code === "client.unreachable" || status === 503 || (code === "client.response" && (status ?? 0) >= 502)
  )
}

async function errorOf(response: Response): Promise<ClientError> {
  const { status } = response
  const text = await response.text().catch(() => "")
  const { error } = Object(parseOr(text, undefined)) as { error?: Partial<ClientError> }
  if (typeof error?.code === "string" && typeof error.message === "string")
    return new ClientError(error.message, { code: error.code, status, details: error.details })
  return new ClientError(`The server responded with status ${status} and no error message.`, {
    code: "client.response",
    status,
  })
}

function parse(text: string, { status, url }: Response): unknown {
  const value = parseOr(text, undefined)
  if (value !== undefined) return value
  throw new ClientError(
    `The response from ${url} is not JSON. Check that this is the URL of a Tackle server.`,
    {
      code: "client.response",
      status,
    },
  )
}

function parseOr(text: string, otherwise: unknown): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return otherwise
  }
}

import type { IncomingMessage, Server, ServerResponse } from "node:http"
import type { ToolCalling } from "../model/model.ts"
import { createToolSupport } from "../model/tool-support.ts"
import type { DialectName } from "../synthetic/dialect.ts"
import { AbortedError } from "../util/abort.ts"
import { errorMessage, UsageError } from "../util/errors.ts"
import { startLocalServer } from "../util/local-server.ts"
import { type AnswerDependencies, answerRequest, readJson } from "./answer-request.ts"
import { type ClientApi, inputTokens } from "./api.ts"
import { chatApi } from "./chat-api.ts"
import { GatewayError, toGatewayError } from "./errors.ts"
import { assertAllowed, type GuardOptions, readBody } from "./guard.ts"
import { messagesApi } from "./messages-api.ts"
import { createReply, type Reply } from "./reply.ts"
import { responsesApi } from "./responses-api.ts"
import { createUpstream } from "./upstream.ts"

/** Options for the gateway. */
export interface GatewayOptions {
  /** Base URL of a Chat Completions API, including `/v1`. */
  upstream: string
  /** Key for the upstream. Replaces the clients' keys. */
  upstreamKey?: string
  policy: ToolCalling
  /** Format of synthetic calls. By default, it depends on the model's name. */
  dialect?: DialectName
  /** Address to listen on. Default: 127.0.0.1. Any address that is not loopback requires `key`. */
  host?: string
  /** Port to listen on. 0 selects any free port. */
  port: number
  /**
   * Key that clients must send. By default, no key is required, and the gateway forwards the client's key to the
   * upstream.
   */
  key?: string
  /**
   * Maximum time in milliseconds without data from the upstream. Default: 10 minutes, the timeout of OpenAI's clients.
   */
  silenceMs?: number
  /** Maximum size of a request body in bytes. Default: 64 MiB. */
  maxBodyBytes?: number
  fetch: typeof fetch
  /** Receives one line for each failed request and each HTTP server problem. */
  onFailure?: (text: string) => void
}

/** A running gateway. */
export interface Gateway {
  /** The base URL for clients. */
  url: string
  /**
   * Waits up to `graceMs` (default 0) for running answers, then closes all connections. Can be called more than once.
   */
  close(graceMs?: number): Promise<void>
}

/** Starts the gateway. Throws `UsageError` if an option is invalid or the gateway cannot listen on the address. */
export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const { host = "127.0.0.1", key, policy, dialect, silenceMs = 600_000 } = options
  const guard: GuardOptions = { key, maxBodyBytes: options.maxBodyBytes ?? 64 * 1024 * 1024 }
  const baseURL = readBaseURL(options.upstream)
  const upstream = createUpstream({ baseURL, key: options.upstreamKey, silenceMs, fetch: options.fetch })
  const dependencies: AnswerDependencies = { upstream, policy, dialect, memory: createToolSupport() }
  const closing = new AbortController()

  async function serve(
    incoming: IncomingMessage,
    route: Route | undefined,
    reply: Reply,
    { signal, onBrokenOff }: { signal: AbortSignal; onBrokenOff(error: GatewayError): void },
  ): Promise<void> {
    assertAllowed(incoming, guard)
    if (route === undefined) throw notServed(incoming)
    const headers = upstream.headers(incoming.headers, key === undefined)
    if (route.name === "models") {
      const models = [baseURL, "models", ...route.model].join("/")
      return await reply.pipe(await upstream.fetchUntil(signal)(models, { headers }))
    }
    const api = apis[route.name]
    const text = await readBody(incoming, guard)
    if (route.name !== "count-tokens")
      return await answerRequest(api, { text, headers, signal, reply, onBrokenOff }, dependencies)
    reply.sendJson(200, { input_tokens: inputTokens(api.read(readJson(text)).call) })
  }

  async function handle(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const gone = new AbortController()
    const signal = AbortSignal.any([gone.signal, closing.signal])
    response.once("close", () => gone.abort(new AbortedError("The client disconnected.")))
    const route = readRoute(incoming.method ?? "", incoming.url ?? "")
    const reply = createReply(response, signal, apis[route?.name ?? "models"])
    function report({ status, message }: GatewayError): void {
      if (!gone.signal.aborted)
        options.onFailure?.(`${incoming.method} ${incoming.url}: ${status} ${message}`)
    }
    try {
      await serve(incoming, route, reply, { signal, onBrokenOff: report })
    } catch (error) {
      if (gone.signal.aborted) return
      const failure = toGatewayError(error)
      report(failure)
      // After the headers have been sent, the only way to report an incomplete answer is to close the connection.
      if (reply.begun) response.destroy()
      else reply.sendError(failure)
    }
  }

  const { server, origin } = await startLocalServer({
    name: "The gateway",
    host,
    port: options.port,
    key,
    answer: handle,
    onProblem: (error) => options.onFailure?.(errorMessage(error)),
  })
  return {
    url: `${origin}/v1`,
    close: (graceMs = 0) =>
      close(server, graceMs, () => closing.abort(new AbortedError("The gateway is closing."))),
  }
}

const apis: Record<Route["name"], ClientApi> = {
  chat: chatApi,
  models: chatApi,
  responses: responsesApi,
  messages: messagesApi,
  "count-tokens": messagesApi,
}

function notServed({ method, url = "" }: IncomingMessage): GatewayError {
  return new GatewayError(
    `${method} ${url.split("?", 1)[0]} is not supported. Supported: POST /v1/chat/completions, /v1/responses, /v1/messages and /v1/messages/count_tokens, and GET /v1/models.`,
    { status: 404, label: "not_found" },
  )
}

function readBaseURL(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.search !== "" || url.username !== "") {
    throw new UsageError(
      `--upstream "${text}" is not a base URL. Use the address of a Chat Completions API, such as http://127.0.0.1:8000/v1.`,
    )
  }
  return url.href.replace(/\/+$/, "")
}

async function close(server: Server, graceMs: number, abort: () => void): Promise<void> {
  if (!server.listening) return
  const { promise, resolve } = Promise.withResolvers<void>()
  server.close(() => resolve())
  server.closeIdleConnections()
  const timer = setTimeout(() => {
    abort()
    server.closeAllConnections()
  }, graceMs)
  await promise
  clearTimeout(timer)
}

/**
 * A request that the gateway serves. `model` contains the encoded path segments of a model's id, and is empty for the
 * list of all models.
 */
type Route =
  | { name: "chat" | "responses" | "messages" | "count-tokens" }
  | { name: "models"; model: string[] }

/**
 * Returns the route of a request, or undefined if the gateway does not serve the request. `url` is the request target.
 * The query is ignored. Segments are decoded once before they are matched. Returns undefined for a path with `.`, `..`,
 * an empty segment, or a character that does not occur in model ids, because the upstream could resolve it to a
 * different path.
 */
function readRoute(method: string, url: string): Route | undefined {
  const [start, ...segments] = (url.split("?", 1)[0] ?? "").split("/").map(decodeSegment)
  if (start !== "" || !segments.every((segment) => segment !== undefined)) return undefined
  const [version, resource, ...rest] = segments
  if (version !== "v1") return undefined
  const name = method === "POST" ? posted.get(segments.slice(1).join(" ")) : undefined
  if (name !== undefined) return { name }
  if (method === "GET" && resource === "models" && rest.every(isModelSegment))
    return { name: "models", model: rest.map((segment) => segment.replaceAll("/", "%2F")) }
  return undefined
}

const posted = new Map([
  ["chat completions", "chat" as const],
  ["responses", "responses" as const],
  ["messages", "messages" as const],
  ["messages count_tokens", "count-tokens" as const],
])

function decodeSegment(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment)
  } catch {
    return undefined
  }
}

/**
 * Returns true if the decoded segment can be part of a model's id. The segment can contain slashes, because clients may
 * encode the slashes in an id, as in `org%2Fmodel`.
 */
function isModelSegment(segment: string): boolean {
  return segment.split("/").every((part) => /^[\w.:@+~-]+$/.test(part) && !/^\.+$/.test(part))
}

import type { IncomingMessage, Server, ServerResponse } from "node:http"
import type { ToolCalling } from "../model/model.ts"
import { createToolSupport } from "../model/tool-support.ts"
import type { DialectName } from "../synthetic/dialect.ts"
import { AbortedError } from "../util/abort.ts"
import { errorMessage, UsageError } from "../util/errors.ts"
import { startLocalServer } from "../util/local-server.ts"
import { answerChat, type ChatDependencies } from "./chat.ts"
import { GatewayError, toGatewayError } from "./errors.ts"
import { assertAllowed, type GuardOptions, readBody } from "./guard.ts"
import { createReply, type Reply } from "./reply.ts"
import { createUpstream } from "./upstream.ts"

/** Where the gateway listens, whom it asks and what it does with tools. */
export interface GatewayOptions {
  /** The base URL of a chat completions API, with its `/v1`. */
  upstream: string
  /** In the place of the clients' own. */
  upstreamKey?: string
  policy: ToolCalling
  /** How models are told to write calls. Default: by their names. */
  dialect?: DialectName
  /** Default: 127.0.0.1. Any other than this machine's own needs a key. */
  host?: string
  /** 0: any free one. */
  port: number
  /** What clients have to send. Default: nothing, and their own key goes to the upstream. */
  key?: string
  /** Milliseconds for which the upstream may be silent. Default: 10 minutes, as long as OpenAI's clients wait. */
  silenceMs?: number
  /** Of a request. Default: 64 MiB. */
  maxBodyBytes?: number
  fetch: typeof fetch
  /** Told of each request that failed, in one line. */
  onFailure?: (text: string) => void
}

/** A gateway that listens. */
export interface Gateway {
  /** What a client takes as its base URL. */
  url: string
  /** Lets answers that have begun end, for `graceMs` (default 0), then ends every connection. May be called twice. */
  close(graceMs?: number): Promise<void>
}

/** Starts the gateway. Throws `UsageError` for an option that cannot be, or a port that is taken. */
export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const { host = "127.0.0.1", key, policy, dialect, silenceMs = 600_000 } = options
  const guard: GuardOptions = { key, maxBodyBytes: options.maxBodyBytes ?? 64 * 1024 * 1024 }
  const baseURL = readBaseURL(options.upstream)
  const upstream = createUpstream({ baseURL, key: options.upstreamKey, silenceMs, fetch: options.fetch })
  const dependencies: ChatDependencies = { upstream, policy, dialect, memory: createToolSupport() }
  const closing = new AbortController()

  async function serve(incoming: IncomingMessage, reply: Reply, signal: AbortSignal): Promise<void> {
    assertAllowed(incoming, guard)
    const headers = upstream.headers(incoming.headers, key === undefined)
    const { method } = incoming
    const path = incoming.url?.split("?", 1)[0] ?? ""
    if (method === "POST" && path === "/v1/chat/completions") {
      const text = await readBody(incoming, guard)
      return await answerChat({ text, headers, signal, reply }, dependencies)
    }
    if (method === "GET" && /^\/v1\/models(\/[^/]+)*$/.test(path)) {
      const models = `${baseURL}${path.slice("/v1".length)}`
      return await reply.pipe(await upstream.fetchUntil(signal)(models, { headers }))
    }
    throw new GatewayError(
      `There is no ${method} ${path} here, only POST /v1/chat/completions and GET /v1/models. Set the client to the chat completions API.`,
      { status: 404, label: "not_found" },
    )
  }

  async function handle(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const gone = new AbortController()
    const signal = AbortSignal.any([gone.signal, closing.signal])
    response.once("close", () => gone.abort(new AbortedError("The client went away.")))
    const reply = createReply(response, signal)
    try {
      await serve(incoming, reply, signal)
    } catch (error) {
      if (gone.signal.aborted) return
      const failure = toGatewayError(error)
      options.onFailure?.(`${incoming.method} ${incoming.url}: ${failure.status} ${failure.message}`)
      // Of an answer that has begun only its end can tell that it is not whole.
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
      close(server, graceMs, () => closing.abort(new AbortedError("The gateway ends."))),
  }
}

function readBaseURL(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.search !== "" || url.username !== "") {
    throw new UsageError(
      `--upstream "${text}" is no base URL: write the address of a chat completions API, such as http://127.0.0.1:8000/v1.`,
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

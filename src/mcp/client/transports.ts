import { StringDecoder } from "node:string_decoder"
import {
  InsufficientScopeError,
  type JSONRPCErrorResponse,
  type JSONRPCMessage,
  ProtocolError,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  SSEClientTransport,
  StreamableHTTPClientTransport,
  serializeMessage,
  type Transport,
} from "@modelcontextprotocol/client"
import { createLineSplitter } from "../../files/line-splitter.ts"
import { within } from "../../util/abort.ts"
import { errorMessage } from "../../util/errors.ts"
import { isRecord, parseJson } from "../../util/json.ts"
import { type RecordTree, type RunningProcess, startProcess } from "../../util/process.ts"
import type { RemoteServer } from "./config.ts"
import { McpCallError, McpSignInError } from "./errors.ts"
import type { Authorizer } from "./oauth/provider.ts"
import { createOpenRequests, maxMessageLength, type OpenRequests } from "./open-requests.ts"

/** A transport that can explain its own errors. */
export interface ServerTransport extends Transport {
  /** Returns why the server does not answer: how it ended, or the error message. */
  explain(error: unknown): string
  /** Returns true if the connection can no longer be used after the error. */
  isLost(error: unknown): boolean
  /**
   * Returns true if the error shows that the server does not support this transport. The server may support an older
   * transport.
   */
  isUnsupported(error: unknown): boolean
}

/** Time limit for the request that ends the session, in milliseconds. */
const shutdownMs = 500

/** Status codes that the protocol defines for a POST request to a server with the older transport. */
const unsupportedStatus: ReadonlySet<number> = new Set([400, 404, 405])

/**
 * Creates a streamable HTTP transport. Sends the configured headers with every request. Follows redirects only within
 * the origin.
 */
export function createHttpTransport(
  { url, headers = {} }: RemoteServer,
  authorizer?: Authorizer,
): ServerTransport {
  const requests = createOpenRequests()
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers },
    fetch: watchingEvents(requests, {
      onReply: (reply) => transport.onmessage?.(reply),
      onEnd({ request, resumes }) {
        if (request === undefined || resumes) return
        const reply = requests.fail(
          request,
          "it ended its response without a reply to the call. The call may have taken effect.",
        )
        if (reply) transport.onmessage?.(reply)
      },
    }),
    onInsufficientScope: "throw",
    authProvider: authorizer,
  })
  const close = transport.close.bind(transport)
  return Object.assign(withErrors(transport, requests, authorizer), {
    async close() {
      if (transport.sessionId !== undefined)
        await within(
          transport.terminateSession().catch(() => {}),
          shutdownMs,
        )
      await close()
    },
  })
}

/**
 * Creates the protocol's older HTTP transport, which receives an event stream and sends each message as a POST request.
 */
export function createSseTransport(
  { url, headers = {} }: RemoteServer,
  authorizer?: Authorizer,
): ServerTransport {
  const requests = createOpenRequests()
  const transport = new SSEClientTransport(new URL(url), {
    requestInit: { headers },
    fetch: watchingEvents(requests, {
      onReply: (reply) => transport.onmessage?.(reply),
      // When the stream ends, the server ends the session, so running calls receive no reply.
      onEnd: () => void transport.close(),
    }),
    authProvider: authorizer,
  })
  return withErrors(transport, requests, authorizer)
}

/** The end of an event stream. */
interface StreamEnd {
  /** Id of the request that the stream answers. */
  request: unknown
  /** Whether the client can continue the stream in a new request. */
  resumes: boolean
}

/** Creates a `fetch` that watches event streams for malformed replies, which the SDK drops, and for their end. */
function watchingEvents(
  requests: OpenRequests,
  { onReply, onEnd }: { onReply(reply: JSONRPCErrorResponse): void; onEnd(end: StreamEnd): void },
): typeof fetch {
  return async (input, init) => {
    const response = await fetch(input, init)
    const type = response.headers.get("content-type") ?? ""
    const end: StreamEnd = { request: requestIn(init?.body), resumes: false }
    // Does not check JSON bodies, because the SDK itself rejects a malformed reply in a JSON body.
    if (/^application\/json\b/i.test(type)) requests.fail(end.request, "")
    if (!response.body || !response.ok || !/^text\/event-stream\b/i.test(type)) return response
    let data: string[] = []
    const lines = createLineSplitter(maxMessageLength, (line, length) => {
      const [, field, value = ""] = /^(data|id): ?(.*)$/s.exec(line) ?? []
      if (field === "id" && value !== "") end.resumes = true
      if (field === "data" && length === line.length) data.push(value)
      if (line !== "" || data.length === 0) return
      const text = data.join("\n")
      data = []
      const reply = requests.read(text) ? undefined : requests.reject(text)
      if (reply) onReply(reply)
    })
    const decoder = new TextDecoder()
    const body = watchedStream(response.body, {
      onChunk: (chunk) => lines.push(decoder.decode(chunk, { stream: true })),
      onEnd: () => onEnd(end),
    })
    const { status, statusText, headers } = response
    return new Response(body, { status, statusText, headers })
  }
}

function requestIn(body: unknown): unknown {
  const parsed = typeof body === "string" ? parseJson(body) : undefined
  return parsed?.ok && isRecord(parsed.value) && "method" in parsed.value ? parsed.value.id : undefined
}

/** Passes a stream through. Calls `onEnd` when the stream ends or fails, but not when it is canceled. */
function watchedStream(
  stream: ReadableStream<Uint8Array<ArrayBuffer>>,
  { onChunk, onEnd }: { onChunk(chunk: Uint8Array): void; onEnd(): void },
): ReadableStream<Uint8Array<ArrayBuffer>> {
  const reader = stream.getReader()
  return new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await reader.read()
        if (done) {
          onEnd()
          controller.close()
        } else {
          onChunk(value)
          controller.enqueue(value)
        }
      } catch (error) {
        onEnd()
        controller.error(error)
      }
    },
    cancel: (reason) => reader.cancel(reason),
  })
}

function withErrors<T extends Transport>(
  transport: T,
  requests: OpenRequests,
  authorizer?: Authorizer,
): T & ServerTransport {
  const plain = transport.send.bind(transport)
  const send: Transport["send"] = async (message, options) => {
    requests.sent(message)
    try {
      await plain(message, options)
    } catch (error) {
      if (authorizer && error instanceof InsufficientScopeError) authorizer.onInsufficientScope(error)
      throw error
    }
  }
  return Object.assign(transport, {
    send,
    explain: (error: unknown) => explain(error, authorizer !== undefined),
    isLost,
    isUnsupported,
  })
}

/** Explains an HTTP transport error. `usesOAuth` determines the hint for a rejected request. */
function explain(error: unknown, usesOAuth: boolean): string {
  const status = error instanceof SdkHttpError ? error.status : undefined
  if (status === 401 || status === 403) {
    const hint = usesOAuth
      ? 'Sign in again (`tackle mcp auth <id>`), or set a key under "headers" in the configuration.'
      : 'Check the key under "headers" in the configuration.'
    return `it returned ${status}. ${hint}`
  }
  // The message of a fetch error only says that the request failed. The reason is in its cause.
  const cause = error instanceof Error && error.cause !== undefined ? `: ${errorMessage(error.cause)}` : ""
  return `${errorMessage(error)}${cause}`
}

/**
 * Returns true for an error that ends the session, for example because the server restarts. An error response, an
 * invalid response or a timeout leaves the session intact.
 */
function isLost(error: unknown): boolean {
  if (error instanceof ProtocolError || error instanceof McpSignInError || error instanceof McpCallError)
    return false
  return !(error instanceof SdkError && harmlessCodes.has(error.code))
}

const harmlessCodes: ReadonlySet<SdkErrorCode> = new Set([
  SdkErrorCode.RequestTimeout,
  SdkErrorCode.InvalidResult,
])

function isUnsupported(error: unknown): boolean {
  return error instanceof SdkHttpError && unsupportedStatus.has(error.status)
}

/** A program that speaks the protocol on stdin and stdout. */
export interface ProgramOptions {
  argv: readonly [string, ...string[]]
  cwd: string
  env: Readonly<Record<string, string | undefined>>
  record: RecordTree
}

/** Time in milliseconds that a server has to exit after its input ends. After this time, the server is killed. */
const exitMs = 500

/** Maximum number of characters from the end of stderr that an error message shows. */
const shownErrors = 1_000

/**
 * Creates a transport that runs the program in its own process group. Closing the transport ends the whole group. Skips
 * output that is not a message, because many servers print a welcome line to stdout. If a message is too long, only its
 * request fails. `start` throws `SpawnError` or `PipeError` if the program cannot be started.
 */
export function createProcessTransport(options: ProgramOptions): ServerTransport {
  const decoder = new StringDecoder()
  const requests = createOpenRequests()
  const lines = createLineSplitter(maxMessageLength, (line, length) => {
    const message = requests.read(line) ?? requests.reject(line, length)
    if (message) transport.onmessage?.(message)
  })
  let child: RunningProcess | undefined
  let errors = ""
  let ended: string | undefined
  let ending: Promise<void> | undefined

  function stop(why: string): void {
    if (ended !== undefined) return
    ended = why
    transport.onclose?.()
  }

  async function end(running: RunningProcess): Promise<void> {
    running.input?.end()
    await within(running.exited, exitMs)
    await running.kill()
    stop("Tackle stopped it")
  }

  const transport: ServerTransport = {
    async start() {
      const running = await startProcess({
        argv: options.argv,
        cwd: options.cwd,
        env: options.env,
        input: true,
        record: options.record,
        paced: true,
        onOutput: (bytes) => lines.push(decoder.write(bytes)),
        onErrorOutput(bytes) {
          errors = (errors + Buffer.from(bytes).toString()).slice(-shownErrors)
        },
      })
      child = running
      // A server that closes its output can no longer answer, even while it runs. None of these promises rejects.
      void running.outputEnded.then(async () => {
        if (await within(running.exited, exitMs)) return
        stop("it closed its output")
        await transport.close()
      })
      void running.exited.then(async ({ code, signal }) => {
        await within(running.closed, exitMs)
        if (ending === undefined) await running.kill()
        running.removeRecords()
        stop(signal ? `${signal} ended it` : `it exited with code ${code}`)
      })
    },
    async send(message: JSONRPCMessage) {
      if (ended !== undefined || !child?.input)
        throw new Error(`the server is not running: ${ended ?? "it was not started"}`)
      requests.sent(message)
      await child.input.write(serializeMessage(message))
    },
    async close() {
      if (!child) return
      ending ??= end(child)
      await ending
    },
    explain(error) {
      const why = ended ?? errorMessage(error)
      return errors.trim() === ""
        ? why
        : `${why.replace(/\.$/, "")}. The end of its stderr:\n${errors.trim()}`
    },
    isLost: () => ended !== undefined,
    isUnsupported: () => false,
  }
  return transport
}

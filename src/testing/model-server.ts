import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import { errorMessage, TackleError } from "../util/errors.ts"
import { isRecord, parseJson } from "../util/json.ts"
import { counted } from "../util/words.ts"
import { chatCompletion } from "./chat-completion.ts"
import { messages } from "./messages.ts"
import type { Reply } from "./reply.ts"
import { responses } from "./responses.ts"
import { sendReply } from "./send-reply.ts"
import type { WireFormat } from "./wire-format.ts"

/** A message in a Chat Completions request, with the fields that tests use. */
export interface ChatMessage {
  role: string
  content?: string | { type: string; text?: string; [key: string]: unknown }[] | null
  tool_calls?: { id: string; type: string; function: { name: string; arguments: string } }[]
  tool_call_id?: string
  [key: string]: unknown
}

/** The parsed body of a request. Its shape is not validated. */
export interface ModelRequestBody {
  model?: string
  stream?: boolean
  stream_options?: { include_usage?: boolean }
  /** The messages in the request. Empty if the body contains none. */
  messages: ChatMessage[]
  tools?: { type: string; function: { name: string; description?: string; parameters: unknown } }[]
  [key: string]: unknown
}

/** A request that the server received. Times are in milliseconds, from `performance.now()` in the server's process. */
export interface RecordedRequest {
  method: string
  /** Path of the request, including the query string. */
  path: string
  headers: Record<string, string>
  body: ModelRequestBody
  /** Size in bytes of the body as it was sent. */
  bytes: number
  /** Time at which the headers arrived. */
  time: number
  /** Time at which the first byte of the answer was written. */
  answerStart?: number
  /** Time at which the last byte of the answer was written. */
  answerEnd?: number
}

/**
 * Replies in the order of the requests, or a function that returns the reply to a request. `index` starts at 0.
 * Requests for the list of models do not count.
 */
export type Script = Reply[] | ((request: RecordedRequest, index: number) => Reply | Promise<Reply>)

/** Replies, models and protocols for the server. */
export interface ModelServerOptions {
  script: Script
  /** Ids that `GET /v1/models` lists. Default: `m`. A request can specify any other model. */
  models?: string[]
  /** Additional protocols. */
  formats?: WireFormat[]
}

/** A model server on 127.0.0.1 that sends scripted replies. */
export interface ModelServer {
  /** Base URL, ending in `/v1`, for a provider's `baseURL`. */
  url: string
  port: number
  /** All requests in the order of arrival, including requests for the list of models. */
  requests: RecordedRequest[]
  /** Closes all connections and frees the port. Idempotent. */
  close(): Promise<void>
}

/**
 * Starts an HTTP server that answers with scripted replies, streamed or not. The server supports OpenAI's Chat
 * Completions and Responses APIs, and Anthropic's Messages API. Answers with an error message and status 400 if the
 * script has no more replies or throws, and status 404 if the path is unknown. Clients do not retry these statuses.
 */
export async function startModelServer(options: ModelServerOptions): Promise<ModelServer> {
  const formats = [chatCompletion, responses, messages, ...(options.formats ?? [])]
  const requests: RecordedRequest[] = []
  let asked = 0

  const server = createServer((incoming, response) => {
    const time = performance.now()
    // A client may disconnect at any time. This is not an error.
    incoming.on("error", () => response.destroy())
    response.on("error", () => response.destroy())
    readText(incoming, (text) => {
      const request = record(incoming, text, time)
      requests.push(request)
      answer(request, response).catch((error: unknown) =>
        sendError(response, chatCompletion, 400, errorMessage(error)),
      )
    })
  })

  async function answer(request: RecordedRequest, response: ServerResponse): Promise<void> {
    if (request.method === "GET" && request.path === "/v1/models") {
      sendJson(response, 200, listOfModels(options.models ?? ["m"]))
      return
    }
    const format = formats.find((candidate) => candidate.accepts(request.method, request.path))
    if (!format) {
      sendError(response, chatCompletion, 404, `No such endpoint: ${request.method} ${request.path}.`)
      return
    }
    const index = asked++
    const reply = await nextReply(options.script, request, index)
    const context = { index, path: request.path, body: request.body, bytes: request.bytes }
    Object.assign(request, await sendReply({ reply, asked: context, format, response }))
  }

  await listen(server)
  const address = server.address()
  if (address === null || typeof address === "string") throw new Error("The server has no port.")
  return {
    url: `http://127.0.0.1:${address.port}/v1`,
    port: address.port,
    requests,
    close: () => close(server),
  }
}

async function nextReply(script: Script, request: RecordedRequest, index: number): Promise<Reply> {
  if (typeof script === "function") return script(request, index)
  const reply = script[index]
  if (reply) return reply
  throw new TackleError(
    `The script has ${counted(script.length, "reply", "replies")}, but this is request ${index + 1}.`,
    {
      code: "script.end",
      recoverable: false,
    },
  )
}

function record(incoming: IncomingMessage, text: string, time: number): RecordedRequest {
  const parsed = parseJson(text)
  return {
    method: incoming.method ?? "",
    path: incoming.url ?? "",
    headers: Object.fromEntries(
      Object.entries(incoming.headers).map(([name, value]) => [name, String(value)]),
    ),
    body: { messages: [], ...(parsed.ok && isRecord(parsed.value) ? parsed.value : {}) },
    bytes: Buffer.byteLength(text),
    time,
  }
}

function readText(incoming: IncomingMessage, onText: (text: string) => void): void {
  const chunks: Buffer[] = []
  incoming.on("data", (chunk: Buffer) => chunks.push(chunk))
  incoming.on("end", () => onText(Buffer.concat(chunks).toString("utf8")))
}

function listOfModels(ids: string[]): string {
  return JSON.stringify({
    object: "list",
    data: ids.map((id) => ({ id, object: "model", owned_by: "script" })),
  })
}

function sendError(response: ServerResponse, format: WireFormat, status: number, message: string): void {
  if (response.headersSent) response.destroy()
  else sendJson(response, status, format.error(message))
}

function sendJson(response: ServerResponse, status: number, body: string): void {
  response.writeHead(status, { "content-type": "application/json" })
  response.end(body)
}

async function listen(server: Server): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  server.once("error", reject)
  server.listen(0, "127.0.0.1", resolve)
  await promise
  server.off("error", reject)
}

async function close(server: Server): Promise<void> {
  if (!server.listening) return
  const { promise, resolve } = Promise.withResolvers<void>()
  server.close(() => resolve())
  server.closeAllConnections()
  await promise
}

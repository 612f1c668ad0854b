import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import { errorMessage, TackleError } from "../util/errors.ts"
import { isRecord, parseJson } from "../util/json.ts"
import { chatCompletion } from "./chat-completion.ts"
import type { Reply } from "./reply.ts"
import { sendReply } from "./send-reply.ts"
import type { WireFormat } from "./wire-format.ts"

/** A message of a chat completions request, as far as tests ask for it. */
export interface ChatMessage {
  role: string
  content?: string | { type: string; text?: string; [key: string]: unknown }[] | null
  tool_calls?: { id: string; type: string; function: { name: string; arguments: string } }[]
  tool_call_id?: string
  [key: string]: unknown
}

/** The parsed body of a request. Nothing is checked: these are the names a test may expect, not a promise. */
export interface ModelRequestBody {
  model?: string
  stream?: boolean
  stream_options?: { include_usage?: boolean }
  /** Empty where the body has none. */
  messages: ChatMessage[]
  tools?: { type: string; function: { name: string; description?: string; parameters: unknown } }[]
  [key: string]: unknown
}

/** A request as it came. Times are milliseconds of `performance.now()` in the server's process. */
export interface RecordedRequest {
  method: string
  /** With its query. */
  path: string
  headers: Record<string, string>
  body: ModelRequestBody
  /** Of the body, on the wire. */
  bytes: number
  /** When its head arrived. */
  time: number
  /** When the first byte of the answer was handed to the system. Absent until then. */
  answerStart?: number
  /** When the last one was. */
  answerEnd?: number
}

/** The answers in the order of the requests, or a function of the request and its number from 0. */
export type Script = Reply[] | ((request: RecordedRequest, index: number) => Reply | Promise<Reply>)

/** What the server answers, and in which formats. */
export interface ModelServerOptions {
  script: Script
  /** The ids that `GET /v1/models` lists. Default: `m`. A request may name any model. */
  models?: string[]
  /** Protocols besides chat completions. */
  formats?: WireFormat[]
}

/** A scripted server that listens on 127.0.0.1. */
export interface ModelServer {
  /** The base URL with `/v1`, as a provider's `baseURL` wants it. */
  url: string
  port: number
  /** Every request, also those for the list of models, in the order of their arrival. */
  requests: RecordedRequest[]
  /** Ends every connection, also a hanging one, and frees the port. May be called twice. */
  close(): Promise<void>
}

/**
 * A real HTTP server on loopback that speaks chat completions, streaming or not as the request wants it, and says what
 * the script tells it. A request after the end of the script, a script that throws and a path that it does not know
 * are answered with status 400 or 404 and a text that says so: providers do not retry these.
 */
export async function startModelServer(options: ModelServerOptions): Promise<ModelServer> {
  const formats = [chatCompletion, ...(options.formats ?? [])]
  const requests: RecordedRequest[] = []
  let asked = 0

  const server = createServer((incoming, response) => {
    const time = performance.now()
    // A client that goes away is an ordinary end of an exchange: there is nobody left to answer.
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
  throw new TackleError(`The script has ${script.length} replies; this is request ${index + 1}.`, {
    code: "script.end",
    recoverable: false,
  })
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

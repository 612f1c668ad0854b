import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"

/** A request that the server received, with its parsed body. */
export interface Received {
  method: string
  url: string
  headers: IncomingMessage["headers"]
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of every format
  body: any
}

export interface TestServer extends AsyncDisposable {
  origin: string
  port: number
  received: Received[]
  /** Resolves when the client closes a connection before the end of the answer. */
  abandoned: Promise<void>
}

/** An HTTP server on 127.0.0.1 that answers by `respond`. */
export async function startServer(
  respond: (response: ServerResponse, request: Received) => void | Promise<void>,
): Promise<TestServer> {
  const received: Received[] = []
  const { promise: abandoned, resolve } = Promise.withResolvers<void>()
  const server = createServer((request, response) => {
    response.on("close", () => {
      if (!response.writableFinished) resolve()
    })
    const chunks: Buffer[] = []
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => {
      const text = Buffer.concat(chunks).toString("utf8")
      const entry: Received = {
        method: request.method ?? "",
        url: request.url ?? "",
        headers: request.headers,
        body: text === "" ? undefined : JSON.parse(text),
      }
      received.push(entry)
      void respond(response, entry)
    })
  })
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening))
  const { port } = server.address() as AddressInfo
  return {
    origin: `http://127.0.0.1:${port}`,
    port,
    received,
    abandoned,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
    },
  }
}

/** Sends objects (and texts as they are) as server-sent events, and ends the answer. */
export function sendEvents(response: ServerResponse, events: readonly unknown[]): void {
  response.writeHead(200, { "content-type": "text/event-stream" })
  for (const event of events)
    response.write(`data: ${typeof event === "string" ? event : JSON.stringify(event)}\n\n`)
  response.end()
}

/** A chunk of a chat completion. */
export function chunk(delta: object, finish: string | null = null, more: object = {}): object {
  return {
    id: "chatcmpl-1",
    object: "chat.completion.chunk",
    created: 1,
    model: "m",
    choices: [{ index: 0, delta, finish_reason: finish }],
    ...more,
  }
}

/** A whole short answer in the format of chat completions. */
export const shortAnswer = [
  chunk({ role: "assistant", content: "Hello" }),
  chunk({ content: " world" }),
  chunk({}, "stop"),
  {
    choices: [],
    usage: { prompt_tokens: 12, completion_tokens: 3, prompt_tokens_details: { cached_tokens: 4 } },
  },
  "[DONE]",
]

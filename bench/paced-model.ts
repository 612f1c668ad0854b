import { createServer, type ServerResponse } from "node:http"

/**
 * A model server that streams answers at a fixed pace, as chat completions. Each delta contains the time at which it
 * was sent.
 */
export interface PacedModel extends AsyncDisposable {
  /** Base URL with `/v1`. */
  url: string
  /** Times of the requests, in ms of `performance.now()`, keyed by the user's latest text. */
  readonly arrivals: Map<string, number>
}

/** Starts a paced model. Each answer has `count` deltas, one every `everyMs` milliseconds. */
export async function startPacedModel({
  count,
  everyMs,
}: {
  count: number
  everyMs: number
}): Promise<PacedModel> {
  const arrivals = new Map<string, number>()
  const server = createServer((incoming, response) => {
    const at = performance.now()
    const chunks: Buffer[] = []
    incoming.on("data", (chunk: Buffer) => chunks.push(chunk))
    incoming.on("end", () => {
      const { messages = [] } = JSON.parse(Buffer.concat(chunks).toString()) as { messages?: Message[] }
      const last = messages.findLast(({ role }) => role === "user")
      arrivals.set(typeof last?.content === "string" ? last.content : JSON.stringify(last?.content), at)
      stream(response, count, everyMs)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const address = server.address()
  if (address === null || typeof address === "string") throw new Error("The model server has no port.")
  return {
    url: `http://127.0.0.1:${address.port}/v1`,
    arrivals,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

interface Message {
  role: string
  content: unknown
}

function stream(response: ServerResponse, count: number, everyMs: number): void {
  response.on("error", () => response.destroy())
  response.writeHead(200, { "content-type": "text/event-stream" })
  const started = performance.now()
  let sent = 0
  const send = (delta: unknown, finish: string | null) =>
    response.write(`data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`)
  const timer = setInterval(() => {
    // Timers can fire late, so the clock determines how many deltas are due.
    const due = Math.min(count, Math.floor((performance.now() - started) / everyMs))
    for (; sent < due; sent += 1) send({ content: `${performance.now().toFixed(1)} ` }, null)
    if (sent < count) return
    clearInterval(timer)
    send({}, "stop")
    response.end("data: [DONE]\n\n")
  }, everyMs)
  response.on("close", () => clearInterval(timer))
}

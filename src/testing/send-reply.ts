import type { ServerResponse } from "node:http"
import type { Fault, Reply } from "./reply.ts"
import type { Asked, EventStream, WireFormat } from "./wire-format.ts"

/** Times at which the first and the last byte of an answer were written, in milliseconds of `performance.now()`. */
export interface AnswerTimes {
  answerStart?: number
  answerEnd?: number
}

interface Exchange {
  reply: Reply
  asked: Asked
  format: WireFormat
  response: ServerResponse
}

/**
 * Sends one reply and returns the times at which its first and last byte were written. Returns an empty object if no
 * answer is sent. Returns early if the client disconnects.
 */
export async function sendReply({ reply, asked, format, response }: Exchange): Promise<AnswerTimes> {
  if (reply.delayMs) await pause(reply.delayMs, response)
  if (response.destroyed || reply.fault === "hang") return {}
  if (reply.fault === "reset") {
    response.socket?.resetAndDestroy()
    return {}
  }
  const status = reply.status ?? 200
  const raw = rawBody(reply, status, format)
  const streams = raw === undefined && !reply.whole && format.streams(asked)
  const answer = streams ? format.events(reply, asked) : halves(raw?.text ?? format.whole(reply, asked))
  const { parts, end } = damaged(answer, reply.fault)
  const type = raw?.type ?? (streams ? "text/event-stream; charset=utf-8" : "application/json")
  const delayMs = streams ? reply.pieceDelayMs : undefined
  // Creates the buffer before the recorded start time, because benchmarks measure the client from that time.
  const writes = delayMs === undefined ? [Buffer.from(parts.join(""))] : parts
  response.writeHead(status, { "content-type": type, "cache-control": "no-cache", ...reply.headers })
  const answerStart = performance.now()
  await write(response, writes, delayMs)
  if (end === "close") response.end()
  // Waits until the last event is written, because the client would otherwise receive less than the script specifies.
  if (end === "cut") response.write("", () => response.socket?.destroy())
  return { answerStart, answerEnd: performance.now() }
}

/** Returns the body to send instead of a well-formed answer, or undefined for a well-formed answer. */
function rawBody(
  reply: Reply,
  status: number,
  format: WireFormat,
): { type: string; text: string } | undefined {
  if (reply.fault === "html")
    return { type: "text/html", text: "<html><body><h1>Bad gateway</h1></body></html>\n" }
  if (reply.body !== undefined) return { type: "application/json", text: reply.body }
  if (status >= 400)
    return { type: "application/json", text: format.error(reply.text ?? `Scripted status ${status}.`) }
  return undefined
}

function damaged(answer: EventStream, fault?: Fault): { parts: string[]; end: "close" | "hang" | "cut" } {
  const all = [...answer.content, ...answer.ending]
  const half = Math.ceil(all.length / 2)
  const first = all.slice(0, half)
  const next = all[half] ?? ""
  switch (fault) {
    case "hang-mid":
      return { parts: first, end: "hang" }
    case "cut":
      return { parts: first, end: "cut" }
    case "half-event":
      return { parts: [...first, next.slice(0, next.length / 2)], end: "close" }
    case "garbage":
      return { parts: [...first, 'data: {"id": no JSON\n\n', ...all.slice(half)], end: "close" }
    case "no-finish":
      return { parts: answer.content, end: "close" }
    default:
      return { parts: all, end: "close" }
  }
}

/** Splits a body into two parts, so that defects in the middle of a stream also apply to a single body. */
function halves(body: string): EventStream {
  const middle = Math.ceil(body.length / 2)
  return { content: [body.slice(0, middle)], ending: [body.slice(middle)] }
}

async function write(response: ServerResponse, writes: (string | Buffer)[], delayMs = 0): Promise<void> {
  for (const [position, part] of writes.entries()) {
    if (position > 0) await pause(delayMs, response)
    if (response.destroyed) return
    response.write(part)
  }
}

/** Waits until the time has passed or the client disconnects. */
async function pause(ms: number, response: ServerResponse): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms)
  response.once("close", resolve)
  await promise
  clearTimeout(timer)
  response.off("close", resolve)
}

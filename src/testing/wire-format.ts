import type { Reply } from "./reply.ts"

/** A request that a wire format handles. */
export interface Asked {
  /** Number of the request, starting at 0. Counts only requests that the script answers. */
  index: number
  path: string
  /** The parsed body. */
  body: Record<string, unknown>
  bytes: number
}

/** A streamed answer. Each event is a string that includes its final blank line. */
export interface EventStream {
  content: string[]
  /** Events that complete the answer: finish reason, usage and terminator. */
  ending: string[]
}

/** A protocol of the model server. Defines which requests it accepts and how a reply is formatted. */
export interface WireFormat {
  accepts(method: string, path: string): boolean
  /** Returns true if the request asks for a stream. */
  streams(asked: Asked): boolean
  events(reply: Reply, asked: Asked): EventStream
  /** Returns the body of an answer that is not streamed. */
  whole(reply: Reply, asked: Asked): string
  /** Returns the body of an answer with an error status. */
  error(message: string): string
}

/** Returns a server-sent event with JSON data. */
export function dataEvent(data: unknown): string {
  return `data: ${JSON.stringify(data)}\n\n`
}

/** Returns a server-sent event with a name. The JSON data repeats the name as `type`. */
export function namedEvent(type: string, data: object): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`
}

import type { Reply } from "./reply.ts"

/** The request that a wire format answers. */
export interface Asked {
  /** The number of the request, from 0. Counts only requests that the script answers. */
  index: number
  path: string
  /** The parsed body. */
  body: Record<string, unknown>
  bytes: number
}

/** A streamed answer. Each event is a text with its final blank line. */
export interface EventStream {
  content: string[]
  /** The events that complete the answer: finish reason, usage, terminator. */
  ending: string[]
}

/** A protocol of the model server: the requests that it accepts, and the form of a reply. */
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

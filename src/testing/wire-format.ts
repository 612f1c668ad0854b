import type { Reply } from "./reply.ts"

/** What a wire format knows of the request that it answers. */
export interface Asked {
  /** The number of this request among those that a script answered, from 0. */
  index: number
  path: string
  /** The parsed body. */
  body: Record<string, unknown>
  bytes: number
}

/** A streamed answer as events, each the whole text with its closing blank line. */
export interface EventStream {
  content: string[]
  /** What tells the client that the answer is complete: finish reason, usage, terminator. */
  ending: string[]
}

/** A protocol that the model server speaks: which requests are its own, and how a reply looks in it. */
export interface WireFormat {
  accepts(method: string, path: string): boolean
  /** True where the request wants a stream of events. */
  streams(asked: Asked): boolean
  events(reply: Reply, asked: Asked): EventStream
  /** The body of an answer that is not streamed. */
  whole(reply: Reply, asked: Asked): string
  /** The body of an answer with an error status. */
  error(message: string): string
}

/** One server-sent event with JSON as its data. */
export function dataEvent(data: unknown): string {
  return `data: ${JSON.stringify(data)}\n\n`
}

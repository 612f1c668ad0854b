import type { TackleEvent } from "../event/events.ts"
import { within } from "../util/abort.ts"
import { createChannel } from "../util/channel.ts"
import type { ServerContext } from "./context.ts"

/** Options for {@link eventStream}. */
export interface EventStreamResponse {
  /** Time in milliseconds without data after which a comment is sent, to keep the connection alive. */
  heartbeatMs: number
  /**
   * Session whose stream the client can resume. Only messages with events of this session have an `id`. Default: none.
   */
  idsOf?: string
  /** Called once, when the stream ends or the client disconnects. */
  onEnd(): void
}

/** An event, with the number that is the `id` of its message. */
export interface StreamedEvent {
  type: string
  sessionID?: string
  seq?: number
}

const encoder = new TextEncoder()
const heartbeat = encoder.encode(": heartbeat\n\n")

/** Cache of encoded events. All streams of a session share the event objects, so each event is encoded only once. */
const encoded = new WeakMap<object, Uint8Array>()

function encode(event: StreamedEvent, idsOf: string | undefined): Uint8Array {
  const id = event.seq === undefined ? "" : `id: ${event.seq}\n`
  let bytes = encoded.get(event)
  if (!bytes) {
    bytes = encoder.encode(`${id}data: ${JSON.stringify(event)}\n\n`)
    encoded.set(event, bytes)
  }
  return event.sessionID === idsOf ? bytes : bytes.subarray(id.length)
}

/** The events of a session. `drain` returns all events that have arrived but have not been read. */
interface StreamedEvents extends AsyncIterableIterator<StreamedEvent> {
  drain?(): StreamedEvent[]
}

/** Target size of a write in bytes. Writing several events together saves system calls. */
const writeBytes = 64 * 1024

/**
 * Returns the body of a server-sent event stream. Reads the next events only when the connection accepts more data.
 * Events for a slow client therefore wait in `events`, which limits their number.
 */
export function eventStream(
  events: StreamedEvents,
  { heartbeatMs, idsOf, onEnd }: EventStreamResponse,
): ReadableStream<Uint8Array> {
  let next: Promise<IteratorResult<StreamedEvent>> | undefined
  /** Events that were read but not sent. */
  let read: StreamedEvent[] = []
  let started = false
  let ended = false

  function end(): void {
    if (ended) return
    ended = true
    onEnd()
  }

  /** Sends as many events as fit into one write, in order. */
  function send(controller: ReadableStreamDefaultController<Uint8Array>): void {
    const chunks: Uint8Array[] = []
    let size = 0
    for (const event of read) {
      if (size >= writeBytes) break
      const chunk = encode(event, idsOf)
      chunks.push(chunk)
      size += chunk.length
    }
    read = read.slice(chunks.length)
    controller.enqueue(Buffer.concat(chunks))
  }

  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        if (!started) {
          // Some proxies and browsers pass on the headers only with the first data.
          started = true
          controller.enqueue(encoder.encode("retry: 1000\n\n"))
          return
        }
        if (read.length > 0) return send(controller)
        next ??= events.next()
        const item = await within(next, heartbeatMs).catch((error: unknown) => {
          end()
          throw error
        })
        if (ended) return
        if (item === undefined) {
          controller.enqueue(heartbeat)
          return
        }
        next = undefined
        if (item.done) {
          end()
          controller.close()
          return
        }
        read = [item.value, ...(events.drain?.() ?? [])]
        send(controller)
      },
      async cancel() {
        end()
        await events.return?.()
      },
    },
    { highWaterMark: 0 },
  )
}

/**
 * Returns a response body that streams all events from `subscribe`, converted with `convert`. The stream ends when the
 * server stops, and if the client reads too slowly. The client must then read the sessions again.
 */
export function streamOfAll<T extends StreamedEvent>(
  { heartbeatMs, maxWaiting, streamSignal }: ServerContext,
  {
    subscribe,
    convert,
    first = [],
  }: {
    subscribe(listener: (event: TackleEvent) => void): () => void
    convert(event: TackleEvent): readonly T[]
    /** Events at the start of the stream. */
    first?: readonly T[]
  },
): ReadableStream<Uint8Array> {
  const channel = createChannel<T>(end)
  for (const event of first) channel.push(event)
  const unsubscribe = subscribe((event) => {
    for (const converted of convert(event)) channel.push(converted)
    if (channel.size <= maxWaiting) return
    channel.drain()
    end()
  })
  const ending = streamSignal("")
  ending.signal.addEventListener("abort", end, { once: true })
  function end(): void {
    unsubscribe()
    ending.signal.removeEventListener("abort", end)
    channel.end()
  }
  return eventStream(channel, { heartbeatMs, onEnd: ending.release })
}

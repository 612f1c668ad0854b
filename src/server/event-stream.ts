import { within } from "../util/abort.ts"

/** Options of {@link eventStream}. */
export interface EventStreamResponse {
  /** Interval in milliseconds at which a comment shows that the connection works. */
  heartbeatMs: number
  /** Called once when the stream ends or the client has disconnected. */
  onEnd(): void
}

/** An event, with the number that is the `id` of its message. */
interface StreamedEvent {
  type: string
  seq?: number
}

const encoder = new TextEncoder()
const heartbeat = encoder.encode(": heartbeat\n\n")

/** Encoded events. All streams of a session share the event objects, so each is encoded once. */
const encoded = new WeakMap<object, Uint8Array>()

function encode(event: StreamedEvent): Uint8Array {
  const known = encoded.get(event)
  if (known) return known
  const id = event.seq === undefined ? "" : `id: ${event.seq}\n`
  const bytes = encoder.encode(`${id}data: ${JSON.stringify(event)}\n\n`)
  encoded.set(event, bytes)
  return bytes
}

/**
 * Returns the body of a server-sent event stream. Reads the next event only when the connection accepts more data, so
 * that events for a slow client wait in `events`, which limits their number.
 */
export function eventStream(
  events: AsyncIterableIterator<StreamedEvent>,
  { heartbeatMs, onEnd }: EventStreamResponse,
): ReadableStream<Uint8Array> {
  let next: Promise<IteratorResult<StreamedEvent>> | undefined
  let started = false
  let ended = false

  function end(): void {
    if (ended) return
    ended = true
    onEnd()
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
        next ??= events.next()
        const item = await within(next, heartbeatMs)
        if (ended) return
        if (item === undefined) {
          controller.enqueue(heartbeat)
          return
        }
        next = undefined
        if (item.done) {
          end()
          controller.close()
        } else controller.enqueue(encode(item.value))
      },
      async cancel() {
        end()
        await events.return?.()
      },
    },
    { highWaterMark: 0 },
  )
}

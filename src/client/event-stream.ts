import { createParser } from "eventsource-parser"
import type { TackleEvent } from "../event/events.ts"
import type { SessionEvent, StreamReset } from "../session/session-events.ts"
import { type Connection, canRetry, pause, retryDelay } from "./connection.ts"
import { ClientError } from "./errors.ts"

/** Options for {@link fetchSessionEvents}. */
export interface FollowOptions {
  connection: Connection
  /** Time in milliseconds without data after which a connection counts as lost. */
  silenceMs: number
  sessionID: string
  /** Number of the last event that the reader received. Undefined to receive only new events. */
  after: number | undefined
  signal: AbortSignal | undefined
  /** Returns the number of the session's latest change. */
  sequence(): Promise<number>
  /** Returns the requests that wait for the user, as events. */
  asked(): Promise<TackleEvent[]>
}

/**
 * Returns a session's events like the library's `events`, and reconnects after every interruption. Each numbered event
 * occurs once, in order. After a reset with the reason `unknown`, all objects of the session follow in their current
 * state. Ends when the signal aborts or the session is deleted. Throws {@link ClientError} if the server rejects the
 * request.
 */
export function fetchSessionEvents(options: FollowOptions): AsyncIterableIterator<SessionEvent> {
  const { connection, silenceMs, sessionID, sequence } = options
  const leave = new AbortController()
  const signal = options.signal ? AbortSignal.any([options.signal, leave.signal]) : leave.signal
  let last = options.after

  async function open(): Promise<Response> {
    last ??= await sequence()
    const path = `/session/${encodeURIComponent(sessionID)}/event`
    return connection.open({ path, query: { after: last }, signal, answerMs: silenceMs })
  }

  const events = reconnecting<SessionEvent>({ ...options, signal, open })

  async function* read(): AsyncGenerator<SessionEvent, undefined> {
    for await (const event of events) {
      if (event.type === "reset") {
        if (event.reason === "behind") continue
        last = 0
      } else if (event.seq !== undefined) {
        if (event.seq <= (last ?? 0)) continue
        last = event.seq
      }
      yield event
    }
  }

  return leavable(read(), leave)
}

/**
 * Calls the listener for all of the server's events until the signal aborts. Misses events that occur while the
 * connection is interrupted. Rejects with {@link ClientError} if the server rejects the request.
 */
export async function followAll({
  listener,
  ...options
}: Pick<FollowOptions, "connection" | "silenceMs" | "asked"> & {
  signal: AbortSignal
  listener(event: TackleEvent): void
}): Promise<void> {
  const { connection, silenceMs, signal } = options
  const open = () => connection.open({ path: "/event", signal, answerMs: silenceMs })
  const events = reconnecting<TackleEvent | StreamReset>({ ...options, open })
  for await (const event of events) if (event.type !== "reset") listener(event)
}

/**
 * Returns a stream's events, and opens the stream again whenever it is interrupted, until the signal aborts or the
 * server reports that the session does not exist. Opens the first stream immediately. After each interruption, adds the
 * requests that wait for the user and that the reader has not received.
 */
function reconnecting<T extends SessionEvent>({
  connection,
  silenceMs,
  signal,
  open,
  asked,
}: Pick<FollowOptions, "connection" | "silenceMs" | "asked"> & {
  signal: AbortSignal
  open(): Promise<Response>
}): AsyncGenerator<T, undefined> {
  /** Ids of the requests that the reader knows. */
  const known = new Set<string>()
  let first: Promise<Response> | undefined = open()
  connection.opensFirst(first)

  function isNew(event: T | TackleEvent): boolean {
    if (event.type !== "permission.asked" && event.type !== "question.asked") return true
    if (known.has(event.request.id)) return false
    known.add(event.request.id)
    return true
  }

  async function* read(): AsyncGenerator<T, undefined> {
    let wasOpen = false
    for (let attempt = 1; !signal.aborted; attempt += 1) {
      try {
        const isFirst = first !== undefined
        const response = await (first ?? open())
        first = undefined
        wasOpen = true
        const missed = isFirst ? undefined : (asked().catch(() => []) as Promise<T[]>)
        for await (const item of withMissed(streamItems<T>(response, { silenceMs, signal }), missed)) {
          attempt = 0
          if (isNew(item)) yield item
        }
      } catch (error) {
        first = undefined
        if (signal.aborted) return
        if (!(error instanceof ClientError)) throw error
        if (wasOpen && error.status === 404) return
        if (!canRetry(error, true)) throw error
      }
      await pause(retryDelay(Math.max(attempt, 1)), signal)
    }
  }

  return read()
}

/** Yields a connection's items. Inserts the missed items as soon as they are loaded. */
async function* withMissed<T>(
  items: AsyncGenerator<T, undefined>,
  missed: Promise<T[]> | undefined,
): AsyncGenerator<T, undefined> {
  try {
    let extra = missed?.then((values) => ({ values }))
    let next = items.next()
    for (;;) {
      const arrived = await (extra ? Promise.race([next, extra]) : next)
      if ("values" in arrived) {
        extra = undefined
        yield* arrived.values
      } else {
        if (arrived.done) return
        yield arrived.value
        next = items.next()
      }
    }
  } finally {
    void items.return(undefined)
  }
}

/** Yields one connection's items. Ends when the connection ends, breaks or times out, or when the signal aborts. */
export async function* streamItems<T>(
  response: Response,
  { silenceMs, signal }: { silenceMs: number; signal?: AbortSignal | undefined },
): AsyncGenerator<T, undefined> {
  const reader = response.body?.getReader()
  if (!reader) return
  const decoder = new TextDecoder()
  let items: T[] = []
  const parser = createParser({ onEvent: ({ data }) => items.push(JSON.parse(data)) })
  try {
    for (;;) {
      const chunk = await readOrSilence(reader, silenceMs)
      if (!chunk || chunk.done || signal?.aborted) return
      parser.feed(decoder.decode(chunk.value, { stream: true }))
      const complete = items
      items = []
      for (const item of complete) {
        if (signal?.aborted) return
        yield item
      }
    }
  } finally {
    void reader.cancel().catch(() => undefined)
  }
}

/** Returns the next chunk, or undefined if the connection breaks or times out. */
async function readOrSilence(reader: ReadableStreamDefaultReader<Uint8Array>, silenceMs: number) {
  const { promise: silence, resolve } = Promise.withResolvers<undefined>()
  const timer = setTimeout(resolve, silenceMs, undefined)
  try {
    return await Promise.race([reader.read(), silence])
  } catch {
    return undefined
  } finally {
    clearTimeout(timer)
  }
}

/** Returns an iterator whose `return` method also ends a pending read. */
function leavable<T>(
  generator: AsyncGenerator<T, undefined>,
  leave: AbortController,
): AsyncIterableIterator<T, undefined> {
  return {
    next: () => generator.next(),
    async return() {
      leave.abort()
      return generator.return(undefined)
    },
    [Symbol.asyncIterator]() {
      return this
    },
  }
}

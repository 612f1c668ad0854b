import type { Bus } from "../event/bus.ts"
import type { EventInput, TackleEvent } from "../event/events.ts"
import { isStreaming } from "../event/part-delta.ts"
import type { Part } from "../schema/part.ts"
import type { SequencedChange, Store } from "../store/store.ts"
import { type Channel, createChannel } from "../util/channel.ts"
import { currentTime } from "../util/time.ts"
import type { OtherRequests } from "./shared-requests.ts"

/**
 * The last item in a stream that cannot continue. With `behind`, the reader was too slow and must follow the session
 * again, starting after `seq`. With `unknown`, the requested number is greater than `seq`, the session's latest number,
 * and the reader must read the session again.
 */
export interface StreamReset {
  type: "reset"
  sessionID: string
  seq: number
  reason: "behind" | "unknown"
}

/** An item in a session's event stream. */
export type SessionEvent = TackleEvent | StreamReset

/** Options for an event stream. */
export interface EventStreamOptions {
  /** Sequence number of the latest event that the reader knows. Default: the number of the session's latest change. */
  after?: number
  /** Signal that ends the stream when aborted. */
  signal?: AbortSignal
  /**
   * Maximum number of events that wait for the reader. If more events wait, the stream ends with a reset. Default:
   * 10,000.
   */
  maxWaiting?: number
}

/** The parts of a session that models are streaming, in this engine and, with a relay, in other engines. */
export interface StreamingParts {
  /** Returns these parts with the text that was announced so far. */
  streaming(): Part[]
  /** Resolves when all changes that are already stored are announced. */
  announced(): Promise<void>
  /** Forgets a part that another engine was streaming and that is now stored completely. */
  ended?(partID: string): void
}

/** Returns the event that announces a stored change. `created` is true for a new message. */
export function eventOf(change: SequencedChange["change"], created = false): EventInput {
  switch (change.kind) {
    case "session":
      return { type: "session.updated", sessionID: change.session.id, session: change.session }
    case "message": {
      const { message } = change
      return { type: created ? "message.created" : "message.updated", sessionID: message.sessionID, message }
    }
    case "part":
      return { type: "part.updated", sessionID: change.part.sessionID, part: change.part }
    case "part.remove": {
      const { sessionID, messageID, partID } = change
      return { type: "part.removed", sessionID, messageID, partID }
    }
    case "todos":
      return { type: "todo.updated", sessionID: change.sessionID, todos: [...change.todos] }
    case "input":
      return { type: "input.updated", sessionID: change.input.sessionID, input: change.input }
  }
}

/** Maximum number of reads before events without a number are sent. */
const maxReads = 3

/** The sources of an event stream. */
export interface FollowedStore {
  store: Store
  bus: Bus
  parts: StreamingParts
  /** Requests of other processes. If undefined, the stream contains only the requests of this engine. */
  otherRequests?: Pick<OtherRequests, "subscribe">
  /** Called when the stream ends. */
  onEnd?: (() => void) | undefined
}

/**
 * Returns a session's events in three phases:
 * - the stored changes after `after`, with each object once in its current state;
 * - a `part.updated` without a number for each part that is being streamed, with its text so far;
 * - all events as they happen, including changes by other engines.
 *
 * Events with a sequence number are in order, and no change is missing. The text so far is sent again after each change
 * by another engine. If this engine deletes the session, the last event is `session.deleted`. Throws `StoreError` if
 * the store cannot be read. The reader can then follow the session again, starting after the last number that it
 * received.
 */
export function streamSessionEvents(
  { store, bus, parts, otherRequests, onEnd }: FollowedStore,
  sessionID: string,
  { after, signal, maxWaiting = 10_000 }: EventStreamOptions,
): Channel<SessionEvent> {
  /** Events that happen while the store is being read. */
  const live: TackleEvent[] = []
  let reading = false
  /** True if the store has changed while it was being read, so that the read may have missed the change. */
  let again = false
  /** Number of the last event in the stream. */
  let last = after ?? 0
  /**
   * Number of an event that the latest read of the store did not contain. The changes of a deleted session are not in
   * the store.
   */
  let missing: number | undefined
  /** The latest `run.completed` event for which the store was read before the event is sent. */
  let readBefore: TackleEvent | undefined
  /** Number of waiting events above which the reader is too slow. */
  let limit = maxWaiting
  /** True from a read of the store until the current text of the parts that are being streamed has been sent. */
  let joining = false

  const channel = createChannel<SessionEvent>(stop)
  let unsubscribeRequests: (() => void) | undefined
  const unsubscribe = bus.follow(sessionID, take)
  const unwatch = store.watch((changed) => {
    if (changed && !changed.has(sessionID)) return
    if (reading) again = true
    else void catchUp()
  })
  signal?.addEventListener("abort", end, { once: true })

  function take(event: TackleEvent): void {
    if (event.type === "session.deleted") {
      channel.push(event)
      end()
      return
    }
    live.push(event)
    if (!reading) takeLive()
  }

  function stop(): void {
    unsubscribe()
    unsubscribeRequests?.()
    unwatch()
    onEnd?.()
    signal?.removeEventListener("abort", end)
    live.length = 0
  }

  function end(): void {
    stop()
    channel.end()
  }

  function send(event: TackleEvent): void {
    channel.push(event)
    if (!reading && channel.size <= maxWaiting) limit = maxWaiting
    if (channel.size <= limit) return
    const [first] = channel.drain().flatMap((waiting) => waiting.seq ?? [])
    finish({ type: "reset", sessionID, seq: first === undefined ? last : first - 1, reason: "behind" })
  }

  function finish(reset: StreamReset): void {
    channel.push(reset)
    end()
  }

  function takeLive(): void {
    for (let event = live.shift(); event; event = live.shift()) {
      const { seq } = event
      if (event.type === "run.completed" && parts.ended && event !== readBefore) {
        // If another engine ends the run, its event may be faster than the notification of the latest changes.
        readBefore = event
        live.unshift(event)
        void catchUp()
        return
      }
      if (seq === undefined) {
        // The text so far, or a later state of the part, already contains this change.
        if (!(joining && (event.type === "part.delta" || event.type === "part.updated"))) send(event)
        continue
      }
      if (seq <= last) continue
      if (seq > last + 1 && seq !== missing) {
        // Another engine made a change in between.
        missing = seq
        live.unshift(event)
        void catchUp()
        return
      }
      last = seq
      send(event)
    }
    if (!joining) return
    joining = false
    for (const part of parts.streaming()) {
      send({ type: "part.updated", sessionID, part, time: currentTime() })
    }
  }

  /** Sends the stored changes after the last event, then the events that happened while the store was being read. */
  async function catchUp({ isFirst = false } = {}): Promise<void> {
    reading = true
    again = false
    try {
      const changes: SequencedChange[] = []
      // Changes that were announced during the read come before events without a number.
      for (let reads = 0; reads === 0 || (again && reads < maxReads); reads += 1) {
        again = false
        changes.push(...(await store.changes(sessionID, changes.at(-1)?.seq ?? last)))
      }
      // A long session has many changes, which does not mean that its reader is slow. If the first changes counted, the
      // reader could never receive all of them.
      if (isFirst) limit += changes.length
      for (const { seq, change } of changes) {
        last = seq
        if (change.kind === "part" && !isStreaming(change.part)) parts.ended?.(change.part.id)
        send({ ...eventOf(change), time: currentTime(), seq })
      }
      if (isFirst || changes.length > 0) {
        joining = true
        // Otherwise, a part could appear to be streaming after its complete state was sent.
        await parts.announced()
      }
    } catch (error) {
      stop()
      channel.fail(error)
    }
    reading = false
    takeLive()
    if (again && !reading) void catchUp()
  }

  async function begin(): Promise<void> {
    reading = true
    const present = await store.sequence(sessionID)
    if (last > present) return finish({ type: "reset", sessionID, seq: present, reason: "unknown" })
    if (after === undefined) last = present
    await catchUp({ isFirst: true })
  }

  if (signal?.aborted) {
    end()
    return channel
  }
  begin().catch((error: unknown) => {
    stop()
    channel.fail(error)
  })
  // Requests that are already waiting come after the stored changes.
  unsubscribeRequests = otherRequests?.subscribe((event) => {
    if (event.sessionID === sessionID) take(event)
  })
  return channel
}

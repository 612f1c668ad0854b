import type { EventInput, TackleEvent } from "../event/events.ts"
import type { StoredRequest, WaitingRequest } from "../schema/request.ts"
import type { Store } from "../store/store.ts"
import { currentTime } from "../util/time.ts"

/** The requests of other engines on the same store that wait for the user. */
export interface OtherRequests {
  /** Returns the waiting requests, oldest first. */
  list(): Promise<WaitingRequest[]>
  /**
   * Calls the listener with events for waiting requests and their answers. Also announces requests that are already
   * waiting. The end of a killed process is not reported. Returns a function that unsubscribes.
   */
  subscribe(listener: (event: TackleEvent) => void): () => void
}

/**
 * Creates the access to the requests of other engines. Reads the store only while there is a listener, and after
 * changes of requests. `isOwn` returns true for the id of an engine whose requests are already known.
 */
export function createOtherRequests(store: Store, isOwn: (holderID: string) => boolean): OtherRequests {
  const listeners = new Set<(event: TackleEvent) => void>()
  /** The waiting requests that have been announced. */
  const known = new Map<string, WaitingRequest>()
  let unwatch: (() => void) | undefined
  let reading = false
  let again = false

  async function list(): Promise<WaitingRequest[]> {
    return (await store.requests()).filter(({ holder }) => !isOwn(holder)).map(({ asked }) => asked)
  }

  async function read(): Promise<void> {
    again = true
    if (reading) return
    reading = true
    while (again) {
      again = false
      // If the store cannot be read, the next change triggers another attempt.
      await announce().catch(() => {})
    }
    reading = false
  }

  async function announce(): Promise<void> {
    const waiting = await list()
    const ids = new Set(waiting.map(({ id }) => id))
    const ended = await Promise.all(
      [...known.values()]
        .filter(({ id }) => !ids.has(id))
        .map(async (asked) => endOf(asked, await store.request(asked.id))),
    )
    if (!unwatch) return
    for (const event of ended) {
      known.delete(event.requestID)
      send(event)
    }
    for (const asked of waiting) {
      if (known.has(asked.id)) continue
      known.set(asked.id, asked)
      send(askedEvent(asked))
    }
  }

  function send(event: EventInput): void {
    for (const listener of [...listeners]) listener({ ...event, time: currentTime() })
  }

  return {
    list,
    subscribe(listener) {
      const entry = (event: TackleEvent) => listener(event)
      for (const asked of known.values()) entry({ ...askedEvent(asked), time: currentTime() })
      listeners.add(entry)
      if (!unwatch) {
        unwatch = store.watchControl((change) => {
          const isRequest = !change || change.what === "request"
          // The requests of a session end when its lease ends.
          if (isRequest || [...known.values()].some(({ sessionID }) => sessionID === change.sessionID))
            void read()
        })
        void read()
      }
      return () => {
        listeners.delete(entry)
        if (listeners.size > 0) return
        unwatch?.()
        unwatch = undefined
        known.clear()
      }
    },
  }
}

function askedEvent(asked: WaitingRequest): EventInput {
  const { type, ...request } = asked
  return { type: `${type}.asked`, sessionID: asked.sessionID, request } as EventInput
}

type EndEvent = Extract<EventInput, { type: "permission.replied" | "question.replied" | "question.rejected" }>

/** Returns the event for the answer. An unanswered request ended with its run. */
function endOf(
  { id: requestID, sessionID, type }: WaitingRequest,
  stored: StoredRequest | undefined,
): EndEvent {
  const answer = stored?.answer
  if (answer?.type === "permission") {
    const { reply, source } = answer
    const message = reply.reply === "reject" ? reply.message : undefined
    return { type: "permission.replied", sessionID, requestID, reply: reply.reply, source, message }
  }
  if (answer?.answers) return { type: "question.replied", sessionID, requestID, answers: answer.answers }
  if (type === "question") return { type: "question.rejected", sessionID, requestID }
  return { type: "permission.replied", sessionID, requestID, reply: "reject", source: "abort" }
}

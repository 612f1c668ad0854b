import type { EventInput, TackleEvent } from "../event/events.ts"
import type { RequestBoard } from "../permission/pending-requests.ts"
import type { RequestAnswer, StoredRequest, WaitingRequest } from "../schema/request.ts"
import { type Lease, type LeaseHolder, LeaseLostError, type Store } from "../store/store.ts"
import { currentTime } from "../util/time.ts"

/** Dependencies of {@link createRequestBoard}. */
export interface RequestBoardOptions {
  store: Store
  holder: LeaseHolder
  /** The leases that this engine holds, keyed by session id. Requests from sessions without a lease are not stored. */
  leases: ReadonlyMap<string, Lease>
  onProblem(message: string, error: unknown): void
}

/** A request that this engine shares with other processes. */
interface Shared {
  request: WaitingRequest
  deliver(answer: RequestAnswer): void
  /** Timer that starts to store the request. */
  timer: NodeJS.Immediate
  /** Resolves when the request has been stored, or could not be stored. Undefined until storing begins. */
  storing?: Promise<void>
  isStored: boolean
  /** Ids of the answers that this engine has given. */
  answers: Set<string>
}

/** Creates the request board of one engine. Watches the store only while a request is stored. */
export function createRequestBoard({ store, holder, leases, onProblem }: RequestBoardOptions): RequestBoard {
  const shared = new Map<string, Shared>()
  let unwatch: (() => void) | undefined

  async function save(entry: Shared, lease: Lease): Promise<void> {
    const { request } = entry
    // Starts before the write, so that no answer is missed.
    unwatch ??= store.watchControl((change) => {
      if (!change || change.what === "request") void deliverAnswers(change?.sessionID)
    })
    const time = { created: currentTime() }
    try {
      await store.openRequest({ asked: request, holder: holder.id, epoch: lease.epoch, time }, lease)
      entry.isStored = true
    } catch (error) {
      if (!(error instanceof LeaseLostError))
        onProblem("a request could not be shown to other processes", error)
    }
  }

  /** Delivers the answers that other processes have stored. */
  async function deliverAnswers(sessionID: string | undefined): Promise<void> {
    for (const [id, entry] of [...shared]) {
      if (!entry.storing || (sessionID !== undefined && entry.request.sessionID !== sessionID)) continue
      // If the store cannot be read, the run ends at its next write.
      const stored = await store.request(id).catch(() => undefined)
      if (stored?.answer && !entry.answers.has(stored.answer.id)) deliver(id, entry, stored.answer)
    }
  }

  function deliver(id: string, entry: Shared, answer: RequestAnswer): void {
    if (shared.get(id) !== entry) return
    forget(id)
    entry.deliver(answer)
  }

  function forget(id: string): void {
    shared.delete(id)
    if (shared.size > 0) return
    unwatch?.()
    unwatch = undefined
  }

  function settle(requestID: string, answer: RequestAnswer): boolean | Promise<boolean> {
    const entry = shared.get(requestID)
    if (!entry) return true
    if (entry.storing) return settleStored(entry, answer)
    clearImmediate(entry.timer)
    forget(requestID)
    return true
  }

  async function settleStored(entry: Shared, answer: RequestAnswer): Promise<boolean> {
    const { id: requestID } = entry.request
    await entry.storing
    if (shared.get(requestID) !== entry) return false
    if (!entry.isStored) {
      forget(requestID)
      return true
    }
    entry.answers.add(answer.id)
    const first = (await store.answerRequest(requestID, answer))?.answer
    if (shared.get(requestID) !== entry) return false
    if (first && first.id !== answer.id) {
      deliver(requestID, entry, first)
      return false
    }
    forget(requestID)
    return true
  }

  return {
    share(request, deliver) {
      const lease = leases.get(request.sessionID)
      if (!lease) return
      const entry: Shared = {
        request,
        deliver,
        // A request that code answers immediately does not wait for a user.
        timer: setImmediate(() => {
          entry.storing = save(entry, lease)
        }),
        isStored: false,
        answers: new Set(),
      }
      shared.set(request.id, entry)
    },
    settle,
    withdraw(requestID, answer) {
      // If a request cannot be removed from the store, it ends with its lease.
      const settled = settle(requestID, answer)
      if (typeof settled !== "boolean") settled.catch(() => forget(requestID))
    },
  }
}

/** The requests that wait for the user in other engines on the same store. */
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
 * Creates an {@link OtherRequests}. While it has a listener, reads the store after each change that may add or end a
 * request. Otherwise, reads the store only when `list` is called. `isOwn` returns true for the id of an engine whose
 * requests are omitted, because the caller already knows them.
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

/** Returns the event that announces the end of a request. A request without an answer has ended with its run. */
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

import type { RequestBoard } from "../permission/pending-requests.ts"
import type { RequestAnswer, WaitingRequest } from "../schema/request.ts"
import { type Lease, type LeaseHolder, LeaseLostError, type Store } from "../store/store.ts"
import { currentTime } from "../util/time.ts"

/** Dependencies of {@link createRequestBoard}. */
export interface RequestBoardOptions {
  store: Store
  holder: LeaseHolder
  /** The leases that this engine holds, by session. Requests of sessions without a lease are not stored. */
  leases: ReadonlyMap<string, Lease>
  onProblem(message: string, error: unknown): void
}

/** A request that this engine shares with other processes. */
interface Shared {
  request: WaitingRequest
  deliver(answer: RequestAnswer): void
  /** Fires when the request is stored. */
  timer: NodeJS.Immediate
  /** Resolves when the request has been stored, or could not be stored. Undefined until storing begins. */
  storing?: Promise<void>
  isStored: boolean
  /** Ids of the answers that this engine has given. */
  answers: Set<string>
}

/** Creates the board of one engine. Watches the store only while a request is stored. */
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

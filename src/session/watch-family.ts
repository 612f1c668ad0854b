import type { Bus } from "../event/bus.ts"
import type { ToolPart } from "../schema/part.ts"

/** What is of interest in a session that another one waits for. */
export interface FamilyListener {
  /** It, or a session that it started, waits for a person; the promise resolves with the answer. */
  onWait(answered: Promise<void>): Promise<void>
  /** A call of its own changed. */
  onPart(part: ToolPart): void
  /** Why its run failed or was stopped. */
  onError(message: string): void
}

/** Listens until `end`, which also ends every wait. */
export function watchFamily(bus: Bus, sessionID: string, listener: FamilyListener): { end(): void } {
  const members = new Set([sessionID])
  const waits = new Map<string, () => void>()

  function wait(requestID: string): void {
    const { promise, resolve } = Promise.withResolvers<void>()
    waits.set(requestID, resolve)
    // Never rejects: it follows the promise, which does not.
    void listener.onWait(promise)
  }

  function answered(requestID: string): void {
    waits.get(requestID)?.()
    waits.delete(requestID)
  }

  const unsubscribe = bus.subscribe((event) => {
    if (event.type === "session.created" || event.type === "session.updated") {
      if (members.has(event.session.parentID ?? "")) members.add(event.session.id)
    }
    if (!members.has(event.sessionID)) return
    if (event.type === "permission.asked" || event.type === "question.asked") wait(event.request.id)
    if (event.type === "permission.replied") answered(event.requestID)
    if (event.type === "question.replied" || event.type === "question.rejected") answered(event.requestID)
    if (event.sessionID !== sessionID) return
    if (event.type === "part.updated" && event.part.type === "tool") listener.onPart(event.part)
    if (event.type === "session.error") listener.onError(event.error.message)
  })

  return {
    end() {
      unsubscribe()
      for (const resolve of waits.values()) resolve()
      waits.clear()
    },
  }
}

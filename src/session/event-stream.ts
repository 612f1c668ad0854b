import type { Bus } from "../event/bus.ts"
import type { TackleEvent } from "../event/events.ts"

/**
 * The events of one session from now until its `run.completed`, as an iterable. Nothing is lost between subscription
 * and the first read. Leaving the loop early calls `onLeave`.
 */
export function eventStream(
  bus: Bus,
  sessionID: string,
  onLeave: () => void,
): AsyncIterableIterator<TackleEvent> {
  const queue: TackleEvent[] = []
  /** Reads that wait for an event. */
  const waiting: (() => void)[] = []
  let ended = false

  const unsubscribe = bus.subscribe((event) => {
    if (event.sessionID !== sessionID || ended) return
    queue.push(event)
    if (event.type === "run.completed") end()
    wakeAll()
  })

  function wakeAll(): void {
    for (const wake of waiting.splice(0)) wake()
  }

  function end(): void {
    ended = true
    unsubscribe()
  }

  return {
    [Symbol.asyncIterator]() {
      return this
    },
    async next() {
      for (;;) {
        const event = queue.shift()
        if (event) return { done: false, value: event }
        if (ended) return { done: true, value: undefined }
        const { promise, resolve } = Promise.withResolvers<void>()
        waiting.push(resolve)
        await promise
      }
    },
    async return() {
      if (!ended) {
        end()
        onLeave()
      }
      queue.length = 0
      wakeAll()
      return { done: true, value: undefined }
    },
  }
}

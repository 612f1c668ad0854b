import { AsyncLocalStorage } from "node:async_hooks"
import { currentTime } from "../util/clock.ts"
import type { EventInput, EventOf, EventType, TackleEvent } from "./events.ts"

/** Delivers events to the subscribers in this process. */
export interface Bus {
  /**
   * Calls every subscriber synchronously, in the order of subscription, and returns the event. If a subscriber
   * publishes an event, it is delivered after the current one, so all subscribers see the same order. Errors of
   * subscribers are reported, not thrown. Subscribers run in the async context in which the bus was created.
   */
  publish<T extends EventType>(event: Extract<EventInput, { type: T }>): EventOf<T>
  /** Subscribes to all events. Returns a function that ends the subscription. */
  subscribe(listener: (event: TackleEvent) => void): () => void
  /** Subscribes to events of one type. Returns a function that ends the subscription. */
  on<T extends EventType>(type: T, listener: (event: EventOf<T>) => void): () => void
}

/** Creates a bus. `onError` receives errors of subscribers. `hide` removes secrets from each event. */
export function createBus(
  onError: (error: unknown) => void,
  hide: <T>(value: T) => T = (value) => value,
): Bus {
  const listeners = new Set<(event: TackleEvent) => void>()

  const waiting: TackleEvent[] = []
  let delivering = false
  // In another async context, a later error of a subscriber would be attributed to the call that publishes the event.
  const outsideCalls = AsyncLocalStorage.snapshot()

  function deliver(): void {
    delivering = true
    for (let event = waiting.shift(); event; event = waiting.shift()) {
      for (const listener of [...listeners]) {
        try {
          listener(event)
        } catch (error) {
          onError(error)
        }
      }
    }
    delivering = false
  }

  function subscribe(listener: (event: TackleEvent) => void): () => void {
    // The wrapper is a new function for each subscription, so one listener can subscribe twice.
    const entry = (event: TackleEvent) => listener(event)
    listeners.add(entry)
    return () => listeners.delete(entry)
  }

  return {
    publish<T extends EventType>(event: Extract<EventInput, { type: T }>) {
      const stamped = { ...hide(event), time: currentTime() } as EventOf<T>
      waiting.push(stamped)
      if (!delivering) outsideCalls(deliver)
      return stamped
    },
    subscribe,
    on(type, listener) {
      return subscribe((event) => {
        if (event.type === type) listener(event as EventOf<typeof type>)
      })
    },
  }
}

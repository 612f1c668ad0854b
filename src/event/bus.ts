import { AsyncLocalStorage } from "node:async_hooks"
import type { EventInput, EventOf, EventType, TackleEvent } from "./events.ts"

/** Tells all that listen of what happens, in this process alone. */
export interface Bus {
  /**
   * Calls every subscriber at once, in the order they came, and returns what they got. Published by a subscriber, an
   * event goes out when all have had the one before it: everybody hears of them in one order. A subscriber that throws
   * is reported, not propagated. They are called in the async context in which the bus was made.
   */
  publish<T extends EventType>(event: Extract<EventInput, { type: T }>): EventOf<T>
  /** Returns the function that ends the subscription. */
  subscribe(listener: (event: TackleEvent) => void): () => void
  /** The same for one type. */
  on<T extends EventType>(type: T, listener: (event: EventOf<T>) => void): () => void
}

/** `onError` gets what subscribers throw. `hide` takes out of every event what nobody is to see. */
export function createBus(
  onError: (error: unknown) => void,
  hide: <T>(value: T) => T = (value) => value,
): Bus {
  const listeners = new Set<(event: TackleEvent) => void>()

  const waiting: TackleEvent[] = []
  let delivering = false
  // Else what a subscriber throws later would count as an error of the call that had something to tell.
  const outsideOfCalls = AsyncLocalStorage.snapshot()

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
    // A fresh function per subscription, so that one listener can subscribe twice.
    const entry = (event: TackleEvent) => listener(event)
    listeners.add(entry)
    return () => listeners.delete(entry)
  }

  return {
    publish<T extends EventType>(event: Extract<EventInput, { type: T }>) {
      const stamped = { ...hide(event), time: Date.now() } as EventOf<T>
      waiting.push(stamped)
      if (!delivering) outsideOfCalls(deliver)
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

import type { EventInput, EventOf, EventType, TackleEvent } from "./events.ts"

export interface Bus {
  /**
   * Calls every subscriber at once, in the order they came, and returns what they got. A subscriber that throws is
   * reported, not propagated.
   */
  publish<T extends EventType>(event: Extract<EventInput, { type: T }>): EventOf<T>
  /** Returns the function that ends the subscription. */
  subscribe(listener: (event: TackleEvent) => void): () => void
  /** The same for one type. */
  on<T extends EventType>(type: T, listener: (event: EventOf<T>) => void): () => void
}

/** `onError` gets what subscribers throw. */
export function createBus(onError: (error: unknown) => void): Bus {
  const listeners = new Set<(event: TackleEvent) => void>()

  function subscribe(listener: (event: TackleEvent) => void): () => void {
    // A fresh function per subscription, so that one listener can subscribe twice.
    const entry = (event: TackleEvent) => listener(event)
    listeners.add(entry)
    return () => listeners.delete(entry)
  }

  return {
    publish<T extends EventType>(event: Extract<EventInput, { type: T }>) {
      const stamped = { ...event, time: Date.now() } as EventOf<T>
      for (const listener of [...listeners]) {
        try {
          listener(stamped)
        } catch (error) {
          onError(error)
        }
      }
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

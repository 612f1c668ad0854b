import { AsyncLocalStorage } from "node:async_hooks"
import { currentTime } from "../util/time.ts"
import type { EventInput, EventOf, EventType, TackleEvent } from "./events.ts"

/** Delivers events to the subscribers in this process. */
export interface Bus {
  /**
   * Adds the time to the event, calls the event's subscribers synchronously and returns the event. Subscribers to all
   * events come first, then subscribers to the type, then subscribers to the session, each in the order of
   * subscription. An event that a subscriber publishes is delivered after the current event, so all subscribers see the
   * same order. Errors that subscribers throw are passed to `onError` and not rethrown. Subscribers run in the async
   * context in which the bus was created.
   */
  publish<T extends EventType>(event: Extract<EventInput, { type: T }>): EventOf<T>
  /** Subscribes to all events. Returns a function that ends the subscription. */
  subscribe(listener: Listener): () => void
  /**
   * Subscribes to one session's events. Returns a function that ends the subscription. The subscription adds no cost to
   * other sessions' events.
   */
  follow(sessionID: string, listener: Listener): () => void
  /** Subscribes to events of one type. Returns a function that ends the subscription. */
  on<T extends EventType>(type: T, listener: (event: EventOf<T>) => void): () => void
}

type Listener = (event: TackleEvent) => void

/** Creates a bus. `onError` receives errors that subscribers throw. `hide` removes secrets from each event. */
export function createBus(
  onError: (error: unknown) => void,
  hide: <T>(value: T) => T = (value) => value,
): Bus {
  const everything = new Set<Listener>()
  const byType = new Map<string, Set<Listener>>()
  const bySession = new Map<string, Set<Listener>>()

  const waiting: TackleEvent[] = []
  let delivering = false
  // In another async context, a subscriber's later error would be attributed to the call that publishes the event.
  const outsideCalls = AsyncLocalStorage.snapshot()

  function deliver(): void {
    delivering = true
    for (let event = waiting.shift(); event; event = waiting.shift()) {
      const { type, sessionID } = event
      const listeners = [...everything, ...(byType.get(type) ?? []), ...(bySession.get(sessionID) ?? [])]
      for (const listener of listeners) {
        try {
          listener(event)
        } catch (error) {
          onError(error)
        }
      }
    }
    delivering = false
  }

  function add(listeners: Set<Listener>, listener: Listener): () => void {
    // Each subscription gets a new wrapper, so the same listener can subscribe twice.
    const entry = (event: TackleEvent) => listener(event)
    listeners.add(entry)
    return () => listeners.delete(entry)
  }

  function addTo(groups: Map<string, Set<Listener>>, key: string, listener: Listener): () => void {
    const listeners = groups.get(key) ?? new Set()
    groups.set(key, listeners)
    const remove = add(listeners, listener)
    return () => {
      remove()
      if (listeners.size === 0 && groups.get(key) === listeners) groups.delete(key)
    }
  }

  return {
    publish<T extends EventType>(event: Extract<EventInput, { type: T }>) {
      const stamped = { ...hide(event), time: currentTime() } as EventOf<T>
      waiting.push(stamped)
      if (!delivering) outsideCalls(deliver)
      return stamped
    },
    subscribe: (listener) => add(everything, listener),
    follow: (sessionID, listener) => addTo(bySession, sessionID, listener),
    on: (type, listener) => addTo(byType, type, listener as Listener),
  }
}

import type { ControlChange } from "./store.ts"

/** Listeners for control changes. See `Store.watchControl`. */
export interface ControlBell {
  /** Adds a listener. Returns a function that removes it. */
  add(listener: (change?: ControlChange) => void): () => void
  /** Calls the listeners. If `change` is omitted, any change may have happened. */
  ring(change?: ControlChange): void
  /** Removes all listeners. */
  clear(): void
  readonly size: number
}

/** Creates a bell without listeners. */
export function createControlBell(): ControlBell {
  const listeners = new Set<(change?: ControlChange) => void>()
  return {
    add(listener) {
      // Each watch gets a new wrapper, so the same listener can be added twice.
      const entry = (change?: ControlChange) => listener(change)
      listeners.add(entry)
      return () => listeners.delete(entry)
    },
    ring(change) {
      for (const listener of [...listeners]) listener(change)
    },
    clear: () => listeners.clear(),
    get size() {
      return listeners.size
    },
  }
}

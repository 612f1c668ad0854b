/** Something that the engine warns of, whatever call it was about. */
export interface Warning {
  level: "warning" | "error"
  text: string
}

/** Hands what the engine warns of to every client that is there. */
export interface Warnings {
  tell(warning: Warning): void
  /** Calls the listener for every warning from now on. Returns the function that ends it. */
  on(listener: (warning: Warning) => void): () => void
}

/** See {@link Warnings}. */
export function createWarnings(): Warnings {
  const listeners = new Set<(warning: Warning) => void>()
  return {
    tell(warning) {
      for (const listener of listeners) listener(warning)
    },
    on(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}

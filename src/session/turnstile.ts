import { SessionBusyError } from "./handle.ts"

/** Lets one piece of work of this engine at a session at a time, and can stop it. */
export interface Turnstile {
  /** Throws {@link SessionBusyError} while another is inside. Whoever enters has to leave. */
  enter(): Entry
  /** Stops what is inside; resolves when it has left. */
  abort(): Promise<void>
}

/** The one inside. */
export interface Entry {
  /** Fires when it is to stop. */
  stopped: AbortSignal
  /** Fires that signal. */
  stop(): void
  leave(): void
}

/** For the session of that id. */
export function createTurnstile(sessionID: string): Turnstile {
  let inside: { stop(): void; left: Promise<void> } | undefined
  return {
    enter() {
      if (inside) throw new SessionBusyError(sessionID)
      const controller = new AbortController()
      const stop = () => controller.abort()
      const { promise: left, resolve } = Promise.withResolvers<void>()
      inside = { stop, left }
      return {
        stopped: controller.signal,
        stop,
        leave() {
          inside = undefined
          resolve()
        },
      }
    },
    async abort() {
      inside?.stop()
      await inside?.left
    },
  }
}

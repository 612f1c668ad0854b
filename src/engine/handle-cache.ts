import type { SessionHandle } from "../session/handle.ts"

/** The handles of an engine: one a session, so that two callers cannot run it at once. */
export interface HandleCache {
  get(id: string): SessionHandle | undefined
  add(handle: SessionHandle): void
  /**
   * Holds the handle no longer than somebody else does: with it goes what it has in memory of the session. While anybody
   * has it, `get` gives the same.
   */
  release(id: string): void
  /** The session is gone. */
  forget(id: string): void
  all(): SessionHandle[]
}

/** An empty book. */
export function createHandleCache(): HandleCache {
  const held = new Map<string, SessionHandle>()
  const released = new Map<string, WeakRef<SessionHandle>>()
  const collected = new FinalizationRegistry<string>((id) => {
    // By now another one may have its place.
    if (released.get(id)?.deref() === undefined) released.delete(id)
  })

  return {
    get: (id) => held.get(id) ?? released.get(id)?.deref(),
    add(handle) {
      held.set(handle.id, handle)
      released.delete(handle.id)
    },
    release(id) {
      const handle = held.get(id)
      if (!handle) return
      held.delete(id)
      released.set(id, new WeakRef(handle))
      collected.register(handle, id)
    },
    forget(id) {
      held.delete(id)
      released.delete(id)
    },
    all: () => [...held.values(), ...[...released.values()].flatMap((handle) => handle.deref() ?? [])],
  }
}

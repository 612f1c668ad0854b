import type { LocalSession } from "../session/handle.ts"

/**
 * The session handles of an engine. Each session has only one handle, so that two callers cannot run the session at the
 * same time.
 */
export interface HandleCache {
  get(id: string): LocalSession | undefined
  add(handle: LocalSession): void
  /**
   * Keeps the handle only while other code references it. Until it is garbage-collected, `get` returns the same handle.
   */
  release(id: string): void
  /** Removes the handle of a deleted session. */
  forget(id: string): void
  all(): LocalSession[]
}

/** Creates an empty cache. */
export function createHandleCache(): HandleCache {
  const held = new Map<string, LocalSession>()
  const released = new Map<string, WeakRef<LocalSession>>()
  const collected = new FinalizationRegistry<string>((id) => {
    // A newer handle may have replaced the collected one.
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

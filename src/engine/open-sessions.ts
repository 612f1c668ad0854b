import type { Bus } from "../event/bus.ts"
import type { Part } from "../schema/part.ts"
import type { Session } from "../schema/session.ts"
import type { LocalSession, SessionHandle } from "../session/handle.ts"
import type { Store } from "../store/store.ts"
import { newId } from "../util/id.ts"
import { currentTime } from "../util/time.ts"

/**
 * An engine's open sessions. Each session has one handle, so that two callers cannot run the session at the same time.
 */
export interface OpenSessions {
  /** Returns a session's handle, or undefined if the session is not open. */
  find(id: string): LocalSession | undefined
  /** Opens a stored session. Returns undefined if the session does not exist. */
  get(id: string): Promise<SessionHandle | undefined>
  /** Like `get`, but returns the {@link LocalSession}. */
  local(id: string): Promise<LocalSession | undefined>
  /** Returns a session's handle. Opens the session if necessary. */
  handleOf(session: Session): SessionHandle
  /** Stores a new session and opens it. Throws `EngineClosedError` if the engine is closed. */
  begin(fields: Omit<Session, "id" | "time">): Promise<SessionHandle>
  /**
   * Opens a session that was just stored, and publishes its creation. `seq` is the number of the session's latest
   * change.
   */
  made(session: Session, seq: number): SessionHandle
  /** Returns the parts that models are streaming into the open sessions. */
  streaming(): Part[]
  /** Returns the handles of the given sessions that are open. */
  all(ids: readonly string[]): SessionHandle[]
  /** Keeps the handle only while other code references it. */
  release(id: string): void
  /** Removes the handle of a deleted session. */
  forget(id: string): void
  /** Ends all runs and waits for them. */
  abortAll(): Promise<void>
}

/** Functions and services that open sessions and publish events about them. */
export interface OpenSessionsOptions {
  store: Pick<Store, "commit" | "session">
  bus: Pick<Bus, "publish">
  /** Throws `EngineClosedError` if the engine is closed. */
  assertOpen(): void
  open(session: Session): LocalSession
}

/** Creates an empty set of open sessions. */
export function createOpenSessions({ store, bus, assertOpen, open }: OpenSessionsOptions): OpenSessions {
  const handles = createHandleCache()

  function handleOf(session: Session): LocalSession {
    const handle = handles.get(session.id) ?? open(session)
    handles.add(handle)
    return handle
  }

  function made(session: Session, seq: number): SessionHandle {
    bus.publish({ type: "session.created", sessionID: session.id, seq, session })
    return handleOf(session)
  }

  async function local(id: string): Promise<LocalSession | undefined> {
    const session = await store.session(id)
    return session && handleOf(session)
  }

  return {
    find: handles.get,
    get: local,
    local,
    handleOf,
    async begin(fields) {
      assertOpen()
      const now = currentTime()
      const session: Session = { id: newId("ses"), ...fields, time: { created: now, updated: now } }
      const [seq = 1] = await store.commit([{ kind: "session", session }])
      return made(session, seq)
    },
    made,
    streaming: () => handles.all().flatMap((handle) => handle.streaming()),
    all: (ids) => ids.flatMap((id) => handles.get(id) ?? []),
    release: handles.release,
    forget: handles.forget,
    async abortAll() {
      await Promise.all(handles.all().map((handle) => handle.abort()))
    },
  }
}

/**
 * Creates an empty cache of session handles. Each session has only one handle, so that two callers cannot run the
 * session at the same time.
 */
export function createHandleCache() {
  const held = new Map<string, LocalSession>()
  const released = new Map<string, WeakRef<LocalSession>>()
  const collected = new FinalizationRegistry<string>((id) => {
    // A newer handle may have replaced the collected one.
    if (released.get(id)?.deref() === undefined) released.delete(id)
  })

  return {
    get: (id: string): LocalSession | undefined => held.get(id) ?? released.get(id)?.deref(),
    add(handle: LocalSession): void {
      held.set(handle.id, handle)
      released.delete(handle.id)
    },
    /**
     * Keeps the handle only while other code references it. Until it is garbage-collected, `get` returns the same
     * handle.
     */
    release(id: string): void {
      const handle = held.get(id)
      if (!handle) return
      held.delete(id)
      released.set(id, new WeakRef(handle))
      collected.register(handle, id)
    },
    /** Removes the handle of a deleted session. */
    forget(id: string): void {
      held.delete(id)
      released.delete(id)
    },
    all: (): LocalSession[] => [
      ...held.values(),
      ...[...released.values()].flatMap((handle) => handle.deref() ?? []),
    ],
  }
}

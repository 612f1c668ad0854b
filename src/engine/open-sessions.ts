import type { Bus } from "../event/bus.ts"
import type { Session } from "../schema/session.ts"
import type { SessionHandle } from "../session/handle.ts"
import type { Store } from "../store/store.ts"
import { newId } from "../util/id.ts"
import { createHandleCache } from "./handle-cache.ts"

/** The sessions that an engine works on: one handle each, so that two callers cannot run one at once. */
export interface OpenSessions {
  /** Undefined where it is not open. */
  find(id: string): SessionHandle | undefined
  /** One that is stored. Undefined where there is none. */
  get(id: string): Promise<SessionHandle | undefined>
  /** Opens it where it was not yet. */
  handleOf(session: Session): SessionHandle
  /** Stores a new session and opens it. Throws `EngineClosedError`. */
  begin(fields: Omit<Session, "id" | "time">): Promise<SessionHandle>
  /** Opens one that was just stored, and tells of it. */
  made(session: Session): SessionHandle
  /** Those of the sessions that are open. */
  all(ids: readonly string[]): SessionHandle[]
  /** Holds a handle no longer than somebody else does. */
  release(id: string): void
  /** The session is gone. */
  forget(id: string): void
  /** Ends all runs, and waits for them. */
  abortAll(): Promise<void>
}

/** How sessions are opened and told of. */
export interface OpenSessionsOptions {
  store: Pick<Store, "commit" | "session">
  bus: Pick<Bus, "publish">
  /** Throws where no session may begin any more. */
  assertOpen(): void
  open(session: Session): SessionHandle
}

/** None is open yet. */
export function createOpenSessions({ store, bus, assertOpen, open }: OpenSessionsOptions): OpenSessions {
  const handles = createHandleCache()

  function handleOf(session: Session): SessionHandle {
    const handle = handles.get(session.id) ?? open(session)
    handles.add(handle)
    return handle
  }

  function made(session: Session): SessionHandle {
    bus.publish({ type: "session.created", sessionID: session.id, session })
    return handleOf(session)
  }

  return {
    find: handles.get,
    async get(id) {
      const session = await store.session(id)
      return session && handleOf(session)
    },
    handleOf,
    async begin(fields) {
      assertOpen()
      const now = Date.now()
      const session: Session = { id: newId("ses"), ...fields, time: { created: now, updated: now } }
      await store.commit([{ kind: "session", session }])
      return made(session)
    },
    made,
    all: (ids) => ids.flatMap((id) => handles.get(id) ?? []),
    release: handles.release,
    forget: handles.forget,
    async abortAll() {
      await Promise.all(handles.all().map((handle) => handle.abort()))
    },
  }
}

import type { Tackle } from "../engine/tackle.ts"
import type { TackleEvent } from "../event/events.ts"
import type { Session } from "../schema/session.ts"
import type { SessionHandle, SessionStatus } from "../session/handle.ts"
import { sessionStatus } from "../session/lease.ts"
import type { OtherRequests } from "../session/shared-requests.ts"
import type { Store } from "../store/store.ts"
import type { Engines } from "./engines.ts"
import { notFound } from "./errors.ts"
import type { SessionView } from "./schemas/session-schemas.ts"

/** Services that all routes share. */
export interface ServerContext {
  version: string
  /** Directory with the web page's files. Undefined if the page is not served. */
  pageDirectory?: string
  /** Store for all sessions. */
  store: Store
  engines: Engines
  /** Permission requests and questions from other processes that use the same store. */
  otherRequests: OtherRequests
  /**
   * Calls the listener for every event of every engine. Also reports requests from other processes, if the server
   * serves their sessions. With `tenant`, reports only events from this tenant's sessions. Returns a function that
   * unsubscribes.
   */
  followEvents(listener: (event: TackleEvent) => void, tenant?: string): () => void
  /**
   * Throws `ServerError` if the server is stopping. With `sessionID`, also throws if starting this session would exceed
   * the maximum number of running sessions. This limit does not apply to a tenant's sessions, whose inputs wait
   * instead.
   */
  assertStartsWork(sessionID?: string, tenant?: string): void
  /** Ends a session's streams. */
  endStreams(sessionID: string): void
  /**
   * Returns a signal that aborts when the session's streams must end. Pass an empty id for a stream of all sessions.
   * Call `release` when the stream has ended. `release` also aborts the signal.
   */
  streamSignal(sessionID: string): { signal: AbortSignal; release(): void }
  heartbeatMs: number
  /** Maximum number of events that wait for a slow client, per stream. */
  maxWaiting: number
}

/** Returns a stored session. Throws `ServerError` if it does not exist or its directory is outside the roots. */
export async function sessionOf({ store, engines }: ServerContext, id: string): Promise<Session> {
  const session = await store.session(id)
  if (!session) throw notFound("session", id)
  engines.assertServed(session.directory)
  return session
}

/** Runs `work` with a session's handle. Throws the same errors as {@link sessionOf}. */
export async function withSession<T>(
  context: ServerContext,
  id: string,
  work: (handle: SessionHandle, tackle: Tackle) => Promise<T>,
): Promise<T> {
  const { directory } = await sessionOf(context, id)
  return context.engines.use(directory, async (tackle) => {
    const handle = await tackle.sessions.get(id)
    if (!handle) throw notFound("session", id)
    return work(handle, tackle)
  })
}

/**
 * Returns a session in the API's format. The returned state is at least as recent as the change with the number `seq`.
 */
export async function viewOf(context: ServerContext, session: Session): Promise<SessionView> {
  const { store, engines } = context
  const seq = await store.sequence(session.id)
  const current = (await store.session(session.id)) ?? session
  const status = await statusOf(store, session.id, engines.find(session.directory))
  return { ...current, seq, status }
}

/** Returns a session's status. `tackle` is the engine for the session's directory, if that engine is open. */
export async function statusOf(
  store: Store,
  sessionID: string,
  tackle: Tackle | undefined,
): Promise<SessionStatus> {
  return (await tackle?.sessions.status(sessionID)) ?? sessionStatus(store, sessionID)
}

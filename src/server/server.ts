import type { Server as HttpServer } from "node:http"
import { getRequestListener } from "@hono/node-server"
import type { Tackle } from "../engine/tackle.ts"
import type { TackleEvent } from "../event/events.ts"
import type { SessionHandle } from "../session/handle.ts"
import { createOtherRequests } from "../session/shared-requests.ts"
import type { Store } from "../store/store.ts"
import { within } from "../util/abort.ts"
import { startLocalServer } from "../util/local-server.ts"
import { isThisProcess } from "../util/process-table.ts"
import { counted } from "../util/words.ts"
import { createApp } from "./app.ts"
import { type ServerContext, statusOf } from "./context.ts"
import { createEngines, type Engines, stopping, tooMany } from "./engines.ts"
import { createAuthenticator, type TokenLine } from "./tokens.ts"

/** Options for the server. */
export interface ServerOptions {
  version: string
  /** Store for all sessions. All engines must use this store. The caller closes it after the server has closed. */
  store: Store
  /**
   * Opens an engine for a directory. The engine must be created with the options `approvals` and `questions`. The
   * server closes the engine, and never opens two engines for one directory.
   */
  openEngine(directory: string): Promise<Tackle>
  /** Directories with the projects that the server may open. All symbolic links must be resolved. */
  roots: readonly string[]
  tokens: readonly TokenLine[]
  /** Address to listen on. Default: 127.0.0.1. */
  host?: string
  /** Port to listen on. 0 selects a free port. */
  port: number
  /** Path of a Unix socket to listen on, instead of host and port. */
  socket?: string
  /** Directory with the built web page, which the server serves at `/`. Default: no page. */
  pageDirectory?: string
  /** Origins of web pages that may use the server. Default: none. */
  origins?: readonly string[]
  /** Time in milliseconds without data after which an event stream sends a comment. Default: 15,000. */
  heartbeatMs?: number
  /** Maximum number of events that wait for a slow client, per stream. Default: 10,000. */
  maxWaiting?: number
  /** Maximum body size in bytes. Default: 20 MB. */
  maxBodyBytes?: number
  /**
   * Maximum number of sessions that run at once, including subagents. Does not apply to tenants' sessions. Default:
   * 256.
   */
  maxRunning?: number
  /** Maximum number of open engines. Idle engines are closed first. Default: 64. */
  maxEngines?: number
  /** Maximum number of concurrent requests per token, including event streams. Default: 500. */
  maxRequests?: number
  /** Maximum number of connections. Default: 1,000. */
  maxConnections?: number
  /** Time limit in milliseconds for receiving a request's headers. Default: 10,000. */
  headersTimeoutMs?: number
  /** Time limit in milliseconds for receiving a whole request. Default: 120,000. */
  requestTimeoutMs?: number
  /** Time in milliseconds after which an unused engine is closed. Default: 15 minutes. */
  idleMs?: number
  onProblem(message: string, error: unknown): void
}

/** A running server. */
export interface Server {
  /** Base URL for clients. For a Unix socket, `http://localhost`. */
  url: string
  /**
   * Returns a URL that opens the web page and logs it in. The URL works once, within 10 minutes. The page receives the
   * scope of the token with the widest scope. Tokens without a tenant are preferred.
   */
  pageAddress(): string
  /**
   * Stops accepting work, waits up to `graceMs` for running prompts, interrupts prompts that are still running, and
   * closes all engines and connections. Inputs that were not delivered stay in the store. Idempotent.
   */
  close(graceMs?: number): Promise<void>
}

/**
 * Starts the server, and delivers the inputs that an earlier server accepted but did not deliver. Throws `UsageError`
 * if the server cannot listen.
 */
export async function startServer(options: ServerOptions): Promise<Server> {
  const { host = "127.0.0.1", store, onProblem, socket, maxRunning = 256 } = options
  let isStopping = false
  const streams = createStreams()
  const engines = createEngines({
    roots: options.roots,
    open: options.openEngine,
    isActive: async (tackle, id) => (await statusOf(store, id, tackle)) !== "idle",
    idleMs: options.idleMs ?? 15 * 60_000,
    maxEngines: options.maxEngines ?? 64,
    onProblem,
  })
  const running = watchRunning(engines)
  const isOwn = (holderID: string) => engines.all().some(({ id }) => id === holderID)
  const otherRequests = createOtherRequests(store, isOwn)
  const context: ServerContext = {
    version: options.version,
    pageDirectory: options.pageDirectory,
    store,
    engines,
    otherRequests,
    followEvents: (listener, tenant) => followEvents(context, listener, tenant),
    assertStartsWork(sessionID, tenant) {
      if (isStopping) throw stopping()
      // A tenant's inputs wait for their turn.
      if (tenant !== undefined) return
      if (sessionID !== undefined && running.size >= maxRunning && !running.has(sessionID))
        throw tooMany(`The server already runs ${counted(maxRunning, "session")}, which is its limit.`)
    },
    endStreams: streams.end,
    streamSignal: streams.signal,
    heartbeatMs: options.heartbeatMs ?? 15_000,
    maxWaiting: options.maxWaiting ?? 10_000,
  }
  const authenticator = createAuthenticator(options.tokens)
  const guardOptions = {
    host: socket === undefined ? host : "localhost",
    origins: options.origins ?? [],
    authenticator,
    maxBodyBytes: options.maxBodyBytes ?? 20_000_000,
    maxRequests: options.maxRequests ?? 500,
  }
  const app = createApp(context, guardOptions, (error) => onProblem("a request failed", error))
  const requestTimeout = options.requestTimeoutMs ?? 120_000
  const headersTimeout = options.headersTimeoutMs ?? Math.min(10_000, requestTimeout)
  const { server, origin } = await startLocalServer({
    name: "The server",
    host,
    port: options.port,
    socket,
    key: "required",
    limits: {
      headersTimeout,
      requestTimeout,
      connectionsCheckingInterval: Math.min(headersTimeout, 5_000),
      maxHeaderSize: 16_384,
    },
    // Replaces the global `Request` and `Response` with faster subclasses, which keep a JSON body as a string.
    answer: getRequestListener((request, environment) => app.fetch(request, environment)),
    onProblem: (error) => onProblem("a connection failed", error),
  })
  server.maxConnections = options.maxConnections ?? 1_000
  const resumed = resume(context, onProblem).catch((error: unknown) =>
    onProblem("waiting inputs could not be resumed", error),
  )

  async function close(graceMs: number): Promise<void> {
    isStopping = true
    await resumed
    await drain(context, graceMs)
    await engines.close()
    streams.endAll()
    await closeConnections(server)
  }

  let closed: Promise<void> | undefined
  return {
    url: origin,
    pageAddress: () => `${origin}/#ticket=${authenticator.ticketForUser(600)}`,
    close: (graceMs = 0) => {
      closed ??= close(graceMs)
      return closed
    },
  }
}

/** See `ServerContext.followEvents`. */
function followEvents(
  { store, engines, otherRequests }: ServerContext,
  listener: (event: TackleEvent) => void,
  tenant: string | undefined,
): () => void {
  const tell = tenant === undefined ? listener : onlyOfTenant(tenant, store, listener)
  let isOver = false
  let last = Promise.resolve()
  const ends = [
    engines.subscribe(tell),
    otherRequests.subscribe((event) => {
      // Sends the events one after another, so that they keep their order.
      last = last.then(async () => {
        const session = await store.session(event.sessionID).catch(() => undefined)
        if (session && engines.isServed(session.directory) && !isOver) tell(event)
      })
    }),
  ]
  return () => {
    isOver = true
    for (const end of ends) end()
  }
}

/** Returns a listener that passes on only the events from a tenant's sessions, in order. */
function onlyOfTenant(
  tenant: string,
  store: Store,
  listener: (event: TackleEvent) => void,
): (event: TackleEvent) => void {
  /** Whether a session belongs to the tenant, keyed by session id. A session never changes its tenant. */
  const known = new Map<string, boolean>()
  let last = Promise.resolve()

  async function isOwn(event: TackleEvent): Promise<boolean> {
    // A deleted session is no longer stored.
    if ("session" in event) return event.session.tenant === tenant
    const { sessionID } = event
    const present = known.get(sessionID)
    if (present !== undefined) return present
    const session = await store.session(sessionID).catch(() => undefined)
    if (session) known.set(sessionID, session.tenant === tenant)
    return session?.tenant === tenant
  }

  return (event) => {
    last = last.then(async () => {
      if (await isOwn(event)) listener(event)
      if (event.type === "session.deleted") known.delete(event.sessionID)
    })
  }
}

/** Returns a live set of the sessions that this server is running. */
function watchRunning(engines: Engines): ReadonlySet<string> {
  const running = new Set<string>()
  engines.subscribe((event) => {
    if (event.type === "message.created") running.add(event.sessionID)
    if (event.type === "run.completed") running.delete(event.sessionID)
  })
  return running
}

/** Delivers the inputs that an earlier server or process left in the store, except paused and held inputs. */
async function resume(
  { store, engines }: ServerContext,
  onProblem: ServerOptions["onProblem"],
): Promise<void> {
  for (const id of await store.sessionsWithInputs()) {
    const session = await store.session(id)
    if (!session || !engines.isServed(session.directory)) continue
    const inputs = await store.inputs(id)
    if (!inputs.some(({ held, paused }) => !held && !paused)) continue
    await engines
      .use(session.directory, async (tackle) => (await tackle.sessions.get(id))?.inputs.resume())
      .catch((error: unknown) => onProblem(`the inputs of session ${id} could not be resumed`, error))
  }
}

/**
 * Waits until no prompt is running, but at most for `graceMs`. When a run ends, its session's next input is not
 * started.
 */
async function drain({ engines, store }: ServerContext, graceMs: number): Promise<void> {
  const running = new Map<string, SessionHandle>()
  for (const { tackle, sessionID } of engines.sessions()) {
    const holder = await store.holder(sessionID)
    const handle = holder && isThisProcess(holder) ? await tackle.sessions.get(sessionID) : undefined
    if (handle) running.set(sessionID, handle)
  }
  engines.subscribe(({ type, sessionID }) => {
    if (type === "run.completed") void running.get(sessionID)?.abort()
  })
  await within(Promise.all([...running.values()].map((handle) => handle.wait())), graceMs)
}

/** Closes the HTTP server. Destroys connections that are still open after one second. */
async function closeConnections(server: HttpServer): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  server.close(() => resolve())
  // A connection becomes idle when its stream has ended.
  const idle = setInterval(() => server.closeIdleConnections(), 20)
  const late = setTimeout(() => server.closeAllConnections(), 1_000)
  await promise
  clearInterval(idle)
  clearTimeout(late)
}

/** Creates the registry of the server's open event streams. */
function createStreams() {
  const open = new Map<string, Set<AbortController>>()
  return {
    signal(sessionID: string): { signal: AbortSignal; release(): void } {
      const controller = new AbortController()
      const controllers = open.get(sessionID) ?? new Set()
      open.set(sessionID, controllers.add(controller))
      return {
        signal: controller.signal,
        release() {
          controllers.delete(controller)
          if (controllers.size === 0 && open.get(sessionID) === controllers) open.delete(sessionID)
          controller.abort()
        },
      }
    },
    end(sessionID: string): void {
      for (const controller of open.get(sessionID) ?? []) controller.abort()
    },
    endAll(): void {
      for (const id of open.keys()) this.end(id)
    },
  }
}

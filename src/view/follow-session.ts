import type { SessionApi, TackleApi } from "../client/api.ts"
import type { TackleEvent } from "../event/events.ts"
import type { StreamReset } from "../session/session-events.ts"
import {
  applyEvent,
  createSessionState,
  dropOldMessages,
  prependMessages,
  type SessionState,
  withSubagentMessages,
  withTotalCost,
} from "./session-state.ts"

/** A session whose state stays up to date. */
export interface FollowedSession {
  readonly session: SessionApi
  readonly state: SessionState
  /** True if the session may have messages before those that are loaded. */
  readonly hasOlder: boolean
  /** Drops all but the newest `kept` messages from the state, without calling `onChange`. */
  dropOld(kept: number): void
  /** Loads older messages. Resolves with true if even older messages may exist. */
  loadOlder(): Promise<boolean>
  /** Loads a subagent's messages. Events contain only new messages. */
  loadSubagent(id: string): Promise<void>
  /** Ends the event stream. The state does not receive changes to the session until {@link reopen} is called. */
  pause(): void
  /**
   * Opens the event stream after the last received event, and reads the data that events do not repeat: requests and
   * the status. Rejects if the session cannot be read. In this case, the session stays paused.
   */
  reopen(): Promise<void>
  /** Stops following the session. `onChange` is not called again. */
  close(): void
}

/** Options for {@link followSession}. */
export interface FollowOptions {
  api: TackleApi
  session: SessionApi
  /** Called after each change to the state. Several events that arrive together cause one call. */
  onChange(state: SessionState): void
  /** Called for each event from the session and its subagents, after the state includes the event. */
  onEvent?(event: TackleEvent): void
  /**
   * Called once if the session can no longer be followed. `error` is the reason, or undefined if the session was
   * deleted.
   */
  onEnd?(error?: unknown): void
  /** Number of messages that are loaded at once. Default: 100. */
  pageSize?: number
}

/**
 * Loads the newest messages of a session and follows its events. Works in the same process and over a network. The
 * returned promise rejects if the session cannot be read.
 */
export async function followSession(options: FollowOptions): Promise<FollowedSession> {
  const { api, session, onChange, onEvent, onEnd, pageSize = 100 } = options
  let isClosed = false
  /** Ends the current event stream. */
  let stream = new AbortController()
  /** Number of the session's most recent event. */
  let last = 0
  let state: SessionState | undefined
  /** Events that arrived since the state was last shown. */
  let waiting: TackleEvent[] = []
  /** True while the events wait for a microtask, or for the session to be loaded. */
  let isScheduled = false
  let statusTimer: ReturnType<typeof setInterval> | undefined
  let hasOlder = false
  // A session's stream does not contain its subagents' events.
  const unsubscribe = api.subscribe(
    (event) => {
      if (event.sessionID !== session.id) take(event)
    },
    { otherProcesses: true },
  )

  /**
   * Opens the event stream, loads the session, and shows it. With `after`, the stream repeats the later changes, and
   * only the other data is loaded. A call has no effect if another call follows before the session is loaded.
   */
  async function open(after?: number): Promise<void> {
    stream.abort()
    stream = new AbortController()
    const { signal } = stream
    // Events wait until the session is loaded.
    isScheduled = true
    // Reads the number before the data. Later changes therefore also arrive as events, even if the data already
    // contains them.
    last = after ?? (await session.sequence())
    if (signal.aborted) return
    // Requests and the end of a run have no number, so the stream is opened before they are read.
    const events = session.events({ after: last, signal })
    const [stored, current] = await Promise.all([
      after === undefined ? loadStored({ api, session }, pageSize) : undefined,
      loadCurrent(options),
    ])
    if (signal.aborted) return
    state = withCurrent(stored ?? known(), current)
    if (stored) hasOlder = stored.messages.length >= pageSize
    applyWaiting()
    show()
    void follow(events, signal)
  }

  function known(): SessionState {
    if (!state) throw new Error("The session is not loaded.")
    return state
  }

  function take(event: TackleEvent): void {
    waiting.push(event)
    if (isScheduled) return
    isScheduled = true
    queueMicrotask(applyWaiting)
  }

  function applyWaiting(): void {
    isScheduled = false
    if (isClosed) return
    const before = known()
    const arrived = waiting
    waiting = []
    for (const event of arrived) {
      state = applyEvent(known(), event)
      if (event.sessionID === session.id || state.subagents.has(event.sessionID)) onEvent?.(event)
    }
    if (state !== before) show()
  }

  function show(): void {
    watchStatus()
    if (!isClosed) onChange(known())
  }

  /**
   * Checks regularly whether a run is still active, because a process that crashes does not report the end of its run.
   */
  function watchStatus(): void {
    if (known().isRunning && !stream.signal.aborted)
      statusTimer ??= setInterval(checkStatus, statusIntervalMs)
    else stopWatching()
  }

  function stopWatching(): void {
    clearInterval(statusTimer)
    statusTimer = undefined
  }

  async function checkStatus(): Promise<void> {
    const { signal } = stream
    const status = await Promise.resolve(api.sessions.status(session.id)).catch(() => "running")
    if (status !== "idle" || !known().isRunning || signal.aborted) return
    state = { ...known(), isRunning: false, requests: [], questions: [] }
    show()
  }

  /** Reads a stream until it ends. */
  async function follow(
    events: AsyncIterable<TackleEvent | StreamReset>,
    signal: AbortSignal,
  ): Promise<void> {
    let failure: unknown
    try {
      for await (const event of events) {
        if (signal.aborted) return
        if (event.type === "reset") return void reload()
        if (event.seq !== undefined) last = event.seq
        take(event)
      }
    } catch (error) {
      failure = error
    }
    if (signal.aborted) return
    close()
    onEnd?.(failure)
  }

  /** Loads the session again, because its stream cannot continue. */
  async function reload(): Promise<void> {
    try {
      await open()
    } catch (error) {
      if (isClosed) return
      close()
      onEnd?.(error)
    }
  }

  function pause(): void {
    stream.abort()
    stopWatching()
  }

  function close(): void {
    isClosed = true
    pause()
    unsubscribe()
  }

  try {
    await open()
  } catch (error) {
    close()
    throw error
  }

  return {
    session,
    get state() {
      return known()
    },
    get hasOlder() {
      return hasOlder
    },
    dropOld(kept) {
      if (known().messages.length <= kept) return
      state = dropOldMessages(known(), kept)
      hasOlder = true
    },
    async loadOlder() {
      const [first] = known().messages
      if (!first) return false
      const older = await session.messages({ before: first.message.id, limit: pageSize })
      state = prependMessages(known(), older)
      hasOlder = older.length === pageSize
      if (older.length > 0) show()
      return hasOlder
    },
    async loadSubagent(id) {
      const subagent = await api.sessions.get(id)
      const messages = await subagent?.messages()
      if (!messages) return
      state = withSubagentMessages(known(), id, messages)
      show()
    },
    pause,
    reopen: () => open(last),
    close,
  }
}

/** Time in milliseconds between two checks of whether a run is still active. */
const statusIntervalMs = 5_000

/** Loads the session data whose changes are sent as numbered events. */
async function loadStored(
  { api, session }: Pick<FollowOptions, "api" | "session">,
  limit: number,
): Promise<SessionState> {
  const [info, messages, inputs, todos] = await Promise.all([
    session.info(),
    session.messages({ limit }),
    session.inputs.list(),
    session.todos(),
  ])
  const state = createSessionState({ session: info, messages, inputs, todos })
  if (messages.length < limit) return state
  const stats = await api.sessions.stats({ session: session.id })
  return withTotalCost(state, stats.usage.cost)
}

/** Loads the data that a stream does not repeat. */
async function loadCurrent({ api, session }: FollowOptions) {
  const [requests, questions, status] = await Promise.all([
    api.pendingRequests(),
    api.questions.pending(),
    api.sessions.status(session.id),
  ])
  const asked = [
    ...requests.map((request) => ({ type: "permission.asked" as const, request })),
    ...questions.map((request) => ({ type: "question.asked" as const, request })),
  ].map((event) => ({ ...event, time: 0, sessionID: event.request.sessionID }) as TackleEvent)
  return { asked, isRunning: status !== undefined && status !== "idle" }
}

function withCurrent(
  state: SessionState,
  { asked, isRunning }: Awaited<ReturnType<typeof loadCurrent>>,
): SessionState {
  // `applyEvent` selects the requests of this session and its subagents.
  return asked.reduce(applyEvent, { ...state, isRunning, requests: [], questions: [] })
}

import type { SessionApi, TackleApi } from "../client/api.ts"
import type { TackleEvent } from "../event/events.ts"
import { applyEvent, createSessionState, prependMessages, type SessionState } from "./session-state.ts"

/** A session whose state is kept up to date. */
export interface FollowedSession {
  readonly session: SessionApi
  readonly state: SessionState
  /** Loads older messages. Resolves with false if no more messages exist. */
  loadOlder(): Promise<boolean>
  /** Stops following the session. `onChange` is not called again. */
  close(): void
}

/** Options of {@link followSession}. */
export interface FollowOptions {
  api: TackleApi
  session: SessionApi
  /** Called after each change of the state. Several events that arrive together cause one call. */
  onChange(state: SessionState): void
  /** Called for each event of the session and its subagents, after it is part of the state. */
  onEvent?(event: TackleEvent): void
  /** Called once if the session can no longer be followed, because it was deleted or the server refuses access. */
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
  const leave = new AbortController()
  /** Events that arrived since the state was last shown. */
  let waiting: TackleEvent[] = []
  /** True while the events wait for a microtask, or for the session to be loaded. */
  let isScheduled = false
  let statusTimer: ReturnType<typeof setInterval> | undefined
  // The stream of a session does not contain the events of its subagents.
  const unsubscribe = api.subscribe((event) => {
    if (event.sessionID !== session.id) take(event)
  })
  let { events, state } = await open().catch((error: unknown) => {
    close()
    throw error
  })

  /**
   * Loads the session, and opens the stream of its later events. Events wait until the caller has stored the state and
   * calls `applyWaiting`.
   */
  async function open() {
    isScheduled = true
    // The number is read before the data. Later changes are therefore repeated as events, even if the data already
    // contains them.
    const after = await session.sequence()
    // Requests and the end of a run have no number, so the stream begins before they are read.
    const events = session.events({ after, signal: leave.signal })
    const state = await load(options, pageSize)
    return { events, state }
  }

  function take(event: TackleEvent): void {
    waiting.push(event)
    if (isScheduled) return
    isScheduled = true
    queueMicrotask(applyWaiting)
  }

  function applyWaiting(): void {
    isScheduled = false
    if (leave.signal.aborted) return
    const before = state
    const arrived = waiting
    waiting = []
    for (const event of arrived) {
      state = applyEvent(state, event)
      if (event.sessionID === session.id || state.subagents.has(event.sessionID)) onEvent?.(event)
    }
    if (state !== before) show()
  }

  function show(): void {
    watchStatus()
    onChange(state)
  }

  /** Regularly checks whether a run is still active, because a run whose process ended does not report its end. */
  function watchStatus(): void {
    if (state.isRunning && !leave.signal.aborted) statusTimer ??= setInterval(checkStatus, statusIntervalMs)
    else {
      clearInterval(statusTimer)
      statusTimer = undefined
    }
  }

  async function checkStatus(): Promise<void> {
    const status = await Promise.resolve(api.sessions.status(session.id)).catch(() => "running")
    if (status !== "idle" || !state.isRunning || leave.signal.aborted) return
    state = { ...state, isRunning: false, requests: [], questions: [] }
    show()
  }

  async function follow(): Promise<void> {
    let failure: unknown
    try {
      while (await readEvents()) {
        ;({ events, state } = await open())
        applyWaiting()
        show()
      }
    } catch (error) {
      failure = error
    }
    if (leave.signal.aborted) return
    close()
    onEnd?.(failure)
  }

  /** Reads events until the stream ends. Resolves with true if the session must be loaded again. */
  async function readEvents(): Promise<boolean> {
    for await (const event of events) {
      if (event.type === "reset") return true
      take(event)
    }
    return false
  }

  function close(): void {
    leave.abort()
    unsubscribe()
    clearInterval(statusTimer)
  }

  applyWaiting()
  watchStatus()
  void follow()

  return {
    session,
    get state() {
      return state
    },
    async loadOlder() {
      const [first] = state.messages
      if (!first) return false
      const older = await session.messages({ before: first.message.id, limit: pageSize })
      state = prependMessages(state, older)
      if (older.length > 0) show()
      return older.length === pageSize
    },
    close,
  }
}

/** Time in milliseconds between two checks whether a run is still active. */
const statusIntervalMs = 5_000

async function load({ api, session }: FollowOptions, limit: number): Promise<SessionState> {
  const [info, messages, inputs, todos, requests, questions, status] = await Promise.all([
    session.info(),
    session.messages({ limit }),
    session.inputs.list(),
    session.todos(),
    api.pendingRequests(),
    api.questions.pending(),
    api.sessions.status(session.id),
  ])
  const isRunning = status !== undefined && status !== "idle"
  const stored = createSessionState({ session: info, messages, inputs, todos, isRunning })
  // Selects the requests of this session and its subagents.
  const asked: TackleEvent[] = [
    ...requests.map((request) => ({ type: "permission.asked" as const, request })),
    ...questions.map((request) => ({ type: "question.asked" as const, request })),
  ].map((event) => ({ ...event, time: 0, sessionID: event.request.sessionID }) as TackleEvent)
  return asked.reduce(applyEvent, stored)
}

import { createUserWaits } from "../call/user-waits.ts"
import type { Bus } from "../event/bus.ts"
import type { TackleEvent } from "../event/events.ts"
import type { Direction, UndoChoice } from "../files/undo.ts"
import type { Session } from "../schema/session.ts"
import { keepAlive } from "../util/keep-alive.ts"
import { compactConversation } from "./compact.ts"
import { openConversation } from "./conversation.ts"
import { concludeBroken } from "./ending.ts"
import {
  type CompactionResult,
  type PromptOptions,
  type PromptRun,
  SessionBusyError,
  type SessionHandle,
} from "./handle.ts"
import { withLease } from "./lease.ts"
import { runPrompt } from "./run-prompt.ts"
import type { SessionEngine } from "./session-engine.ts"
import { watchFamily } from "./subagent.ts"
import { endTurn } from "./turn-patch.ts"
import { type UndoResult, undoTurn } from "./undo.ts"
import { updateTime } from "./update-time.ts"

/** Opens a handle on a stored session. */
export function openSession(initial: Session, engine: SessionEngine): SessionHandle {
  const { store, bus } = engine
  const { id: sessionID } = initial
  const conversation = openConversation(initial, engine)
  const { recorder, readPage } = conversation
  const lock = createPromptLock(sessionID)

  function prompt(text: string, options: PromptOptions = {}): PromptRun {
    engine.assertOpen()
    // Throws for an invalid signal before the session is locked.
    const given = options.signal && AbortSignal.any([options.signal])
    const { stopped, stop, release } = lock.acquire()
    const signal = given ? AbortSignal.any([stopped, given]) : stopped
    const events = eventStream(bus, sessionID, stop)
    const { workMs, end } = watchTime(bus, sessionID)
    const completed = keepAlive(whileHeld(() => runPrompt(conversation, { text, options, signal, workMs })))
      .catch((error: unknown) => {
        // The next prompt continues from the stored state and closes open calls.
        conversation.forget()
        return concludeBroken({ bus, sessionID, workMs }, error)
      })
      .then((event) => {
        end()
        release()
        endTurn(sessionID, engine)
        // The session of a subagent is rarely continued, so its history does not need to stay in memory.
        if (initial.parentID !== undefined) conversation.forget()
        return bus.publish(event)
      })
    return { completed, [Symbol.asyncIterator]: () => events }
  }

  async function compact(given: AbortSignal | undefined): Promise<CompactionResult> {
    return alone(async (stopped) => {
      const signal = given ? AbortSignal.any([stopped, given]) : stopped
      await conversation.catchUp()
      const { session } = conversation
      const agent = engine.agent(session.agent)
      const model = await engine.model(session, agent)
      const result = await compactConversation(conversation, { agent, model, auto: false, signal })
      conversation.session = { ...session, time: updateTime(session) }
      await recorder.session(conversation.session)
      return result
    })
  }

  function goBack(direction: Direction, choice: UndoChoice = {}): Promise<UndoResult> {
    return alone(async () => {
      await conversation.catchUp()
      const { contents, fileCommits } = engine
      const options = { direction, choice, readPage, contents, recorder, fileCommits }
      const { session, result } = await undoTurn(conversation.session, options)
      conversation.session = session
      return result
    })
  }

  /** Runs work that writes the session, with exclusive access to it. */
  async function alone<T>(work: (stopped: AbortSignal) => Promise<T>): Promise<T> {
    engine.assertOpen()
    const { stopped, release } = lock.acquire()
    try {
      return await whileHeld(() => work(stopped))
    } finally {
      release()
    }
  }

  /** Waits for the cleanup after killed runs, then holds the session's lease while `work` runs. */
  async function whileHeld<T>(work: () => Promise<T>): Promise<T> {
    await engine.cleared
    const { holder } = engine
    return withLease({ store, sessionID, holder, settle: conversation.settle }, work)
  }

  return {
    id: sessionID,
    info: () => conversation.session,
    prompt,
    abort: lock.abort,
    messages: (page = {}) => readPage(page),
    compact: ({ signal } = {}) => compact(signal),
    undo: (options) => goBack("undo", options),
    redo: (options) => goBack("redo", options),
  }
}

/** Allows one operation at a time on a session, and can stop it. */
interface PromptLock {
  /** Acquires the lock. The caller must release it. Throws {@link SessionBusyError} if the lock is already held. */
  acquire(): HeldLock
  /** Stops the operation that holds the lock. Resolves when the lock is released. */
  abort(): Promise<void>
}

interface HeldLock {
  /** Fires when the operation must stop. */
  stopped: AbortSignal
  stop(): void
  release(): void
}

function createPromptLock(sessionID: string): PromptLock {
  let held: { stop(): void; released: Promise<void> } | undefined
  return {
    acquire() {
      if (held) throw new SessionBusyError(sessionID)
      const controller = new AbortController()
      const stop = () => controller.abort()
      const { promise: released, resolve } = Promise.withResolvers<void>()
      held = { stop, released }
      return {
        stopped: controller.signal,
        stop,
        release() {
          held = undefined
          resolve()
        },
      }
    },
    async abort() {
      held?.stop()
      await held?.released
    },
  }
}

/**
 * Starts measuring a run. `workMs` returns the time so far in milliseconds, excluding the time that the session or one
 * below it spends waiting for the user.
 */
function watchTime(bus: Bus, sessionID: string): { workMs(): number; end(): void } {
  const started = performance.now()
  const waits = createUserWaits()
  const onWait = (answered: Promise<void>) =>
    waits.during((begin) => {
      begin()
      return answered
    })
  const { end } = watchFamily(bus, sessionID, { onWait })
  return { workMs: () => Math.max(0, Math.round(performance.now() - started - waits.total())), end }
}

/**
 * Returns the events of one session from now until its `run.completed`. Events are queued until they are read. Leaving
 * the loop early calls `onLeave`.
 */
function eventStream(bus: Bus, sessionID: string, onLeave: () => void): AsyncIterableIterator<TackleEvent> {
  const queue: TackleEvent[] = []
  /** Callbacks that wake reads waiting for an event. */
  const waiting: (() => void)[] = []
  let ended = false

  const unsubscribe = bus.subscribe((event) => {
    if (event.sessionID !== sessionID || ended) return
    queue.push(event)
    if (event.type === "run.completed") end()
    wakeAll()
  })

  function wakeAll(): void {
    for (const wake of waiting.splice(0)) wake()
  }

  function end(): void {
    ended = true
    unsubscribe()
  }

  return {
    [Symbol.asyncIterator]() {
      return this
    },
    async next() {
      for (;;) {
        const event = queue.shift()
        if (event) return { done: false, value: event }
        if (ended) return { done: true, value: undefined }
        const { promise, resolve } = Promise.withResolvers<void>()
        waiting.push(resolve)
        await promise
      }
    },
    async return() {
      if (!ended) {
        end()
        onLeave()
      }
      queue.length = 0
      wakeAll()
      return { done: true, value: undefined }
    },
  }
}

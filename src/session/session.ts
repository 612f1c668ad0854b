import { createUserWaits } from "../call/time-limit.ts"
import type { Bus } from "../event/bus.ts"
import type { EventOf, TackleEvent } from "../event/events.ts"
import type { Direction } from "../files/put-back.ts"
import { parseModelName } from "../model/model.ts"
import type { Input } from "../schema/input.ts"
import type { Session } from "../schema/session.ts"
import { type Lease, type LeaseLimit, StoreUnreachableError } from "../store/store.ts"
import { TenantLimitError } from "../store/tenants.ts"
import { AbortedError, keepAlive } from "../util/abort.ts"
import { createChannel } from "../util/channel.ts"
import { errorMessage } from "../util/errors.ts"
import type { CommandCall } from "./command.ts"
import { compactConversation } from "./compact.ts"
import { openConversation, updateTime } from "./conversation.ts"
import { isUnfinished, settleKilled } from "./crash-recovery.ts"
import { concludeBroken, type Ending } from "./ending.ts"
import type {
  CompactionResult,
  LocalSession,
  PromptOptions,
  PromptRun,
  SessionChange,
  UndoOptions,
  UndoResult,
  WorkOptions,
  WorkOutcome,
} from "./handle.ts"
import type { Receipt, SendOptions } from "./inputs.ts"
import { SessionHeldError, stopElsewhere, withLease } from "./lease.ts"
import { createPromptLock, createQueuedRuns, type HeldLock } from "./queued-runs.ts"
import { endTurn, type Prompt, runPrompt, type Said } from "./run-prompt.ts"
import type { SessionEngine } from "./session-engine.ts"
import { streamSessionEvents } from "./session-events.ts"
import { watchFamily } from "./subagent.ts"
import { finishRestoring, undoTurn } from "./undo.ts"

/** Opens a handle to a stored session. */
export function openSession(initial: Session, engine: SessionEngine): LocalSession {
  const { store, bus } = engine
  const { id: sessionID } = initial
  const conversation = openConversation(initial, engine)
  const { recorder, readPage, inputs } = conversation
  const lock = createPromptLock(sessionID)
  const { holder } = engine
  /** True if this or another worker continues the run that is stopped. */
  let isPassedOn = false
  /** True if another process has interrupted the latest run. */
  let isInterrupted = false
  /** Returns the function that ends the worker's job with the current run, if no further run follows. */
  let endJob: (() => Promise<WorkOptions["onRelease"]>) | undefined
  const queuedRuns = createQueuedRuns(conversation, lock, (held) =>
    runNext(held, () => claimNext(held.stopped)),
  )

  function prompt(text: string, options: PromptOptions = {}): PromptRun {
    engine.assertOpen()
    // Throws for an invalid signal before the session is locked.
    const given = options.signal && AbortSignal.any([options.signal])
    const held = lock.acquire()
    const signal = given ? AbortSignal.any([held.stopped, given]) : held.stopped
    const events = promptEvents(bus, sessionID, held.stop)
    const said = [{ text, files: options.files ?? [], command: options.command }]
    const completed = keepAlive(run(held, { options, signal, read: async () => said }))
    queuedRuns.start()
    return { completed, [Symbol.asyncIterator]: () => events }
  }

  /**
   * Runs the texts that `next` returns, if any. Returns false if another engine uses the session, or if its tenant has
   * reached the limit of running sessions. Rejects if the texts cannot be read.
   */
  async function runNext(held: HeldLock, next: () => Promise<Said[]>): Promise<boolean> {
    let claimed = false
    const read = async () => {
      const said = await next()
      claimed = true
      return said
    }
    try {
      const { status } = await keepAlive(run(held, { options: {}, signal: held.stopped, read, ifFree: true }))
      if (!claimed && !isPassedOn)
        throw new Error(`The run ended before it read the inputs (status: ${status}).`)
      return true
    } catch (error) {
      if (error instanceof NothingToRun) return true
      if (mustWait(error)) return false
      throw error
    }
  }

  /** Continues a run whose process ended, then delivers the inputs. See `LocalSession.work`. */
  async function work({ continues, signal, onRelease }: WorkOptions): Promise<WorkOutcome> {
    engine.assertOpen()
    isPassedOn = signal.aborted
    isInterrupted = false
    let isEnded = false
    endJob = async () => {
      // A later input has its own job.
      isEnded = onRelease !== undefined && !(await inputs.hasNext())
      return isEnded ? onRelease : undefined
    }
    const stop = () => {
      isPassedOn = true
      void queuedRuns.stop()
    }
    signal.addEventListener("abort", stop)
    try {
      if (continues && !lock.released && !(await runNext(lock.acquire(), continueRun))) return "held"
      while (!isPassedOn && !isInterrupted && !isEnded && (await inputs.hasNext())) {
        const held = lock.acquire()
        if (!(await runNext(held, () => claimNext(held.stopped)))) return "held"
      }
      return isPassedOn ? "stopped" : "done"
    } finally {
      signal.removeEventListener("abort", stop)
      endJob = undefined
    }
  }

  /** Returns an empty array if the latest run must continue. Otherwise rejects with {@link NothingToRun}. */
  async function continueRun(): Promise<Said[]> {
    conversation.forget()
    // Closes the open calls.
    const history = await conversation.history()
    // A subagent's session does not continue by itself, because its parent starts the subagent again.
    if (initial.parentID !== undefined || !isUnfinished(history)) throw new NothingToRun()
    return []
  }

  async function claimNext(stopped: AbortSignal): Promise<Said[]> {
    // The input that stops this run must not be interrupted with it.
    if (stopped.aborted) throw new NothingToRun()
    const claimed = await inputs.claim("next")
    if (claimed.length === 0) throw new NothingToRun()
    return claimed.map((input) => ({
      text: input.text,
      files: input.files ?? [],
      // The schema of inputs declares only some of the properties of a command.
      command: input.command as CommandCall | undefined,
      input,
    }))
  }

  /**
   * Runs a prompt, releases the lock, and publishes the run's last event. Rejects with {@link NothingToRun} if there is
   * no input to run. With `ifFree`, rejects with {@link SessionHeldError} if another engine uses the session, and with
   * {@link TenantLimitError} if its tenant has reached the limit of running sessions.
   */
  async function run(
    held: HeldLock,
    { read, options, signal, ifFree = false }: QueuedPrompt,
  ): Promise<EventOf<"run.completed">> {
    const { workMs, end } = watchTime(bus, sessionID)
    const unwatch = store.watch((changed) => {
      if (!changed || changed.has(sessionID)) void stopForUrgent(held)
    })
    let freeSlot: (() => void) | undefined
    let isStarted = false
    const done = () => {
      end()
      unwatch()
      freeSlot?.()
      held.release()
    }
    let ending: Ending
    try {
      const { session } = conversation
      if (initial.parentID === undefined) freeSlot = await engine.runSlots?.acquire(session.tenant, signal)
      const limit = engine.tenants?.leaseLimit(session)
      const start = () => {
        isStarted = true
        return runSaid(read, { options, signal, workMs })
      }
      ending = await whileHeld(held, start, limit)
    } catch (error) {
      // The run was stopped while it waited for a slot.
      const isUnstarted = ifFree && !isStarted && error instanceof AbortedError
      if (error instanceof NothingToRun || isUnstarted || (ifFree && mustWait(error))) {
        done()
        throw isUnstarted ? new NothingToRun() : error
      }
      // The next prompt continues from the stored state and closes open calls.
      conversation.forget()
      passOnIfUnreachable(error)
      const reason = isPassedOn ? new AbortedError() : error
      ending = concludeBroken({ bus, sessionID, workMs }, reason)
    }
    done()
    endTurn(sessionID, engine)
    // A subagent session is rarely continued, so its history does not need to stay in memory.
    if (initial.parentID !== undefined) conversation.forget()
    const event = bus.publish(ending)
    queuedRuns.ended(event)
    return event
  }

  async function runSaid(read: QueuedPrompt["read"], prompt: Omit<Prompt, "said">): Promise<Ending> {
    const said = await read().catch((error: unknown) => {
      passOnIfUnreachable(error)
      throw error
    })
    try {
      return await runPrompt(conversation, { ...prompt, said })
    } catch (error) {
      passOnIfUnreachable(error)
      // Holds an input whose run cannot start, so that the engine does not retry it repeatedly.
      await inputs
        .release(prompt.signal.aborted || isPassedOn ? undefined : errorMessage(error))
        .catch(() => {})
      throw error
    }
  }

  /** Lets a worker continue the run later if the error means that the database could not be reached. */
  function passOnIfUnreachable(error: unknown): void {
    if (holder.isWorker && StoreUnreachableError.isThrown(error)) isPassedOn = true
  }

  /** Stores the answer and ends the lease and the worker's job, if any, in one transaction. */
  async function release(): Promise<void> {
    try {
      await recorder.release(await endJob?.())
    } catch (error) {
      passOnIfUnreachable(error)
      throw error
    }
  }

  /** Stops the run for an urgent input that another process has sent. */
  async function stopForUrgent({ stop }: HeldLock): Promise<void> {
    const pending = await inputs.pending().catch(() => [])
    const urgent = pending.filter(({ delivery: how, held, paused }) => how === "now" && !held && !paused)
    // The run that delivers an urgent input has claimed it.
    if (urgent.some(({ claimedBy }) => claimedBy !== engine.holder.id)) stop()
  }

  async function send(text: string, options: SendOptions = {}): Promise<Receipt> {
    engine.assertOpen()
    const { session } = conversation
    // The limits have already counted an input that is sent again.
    const isSentAgain =
      session.tenant !== undefined && options.id !== undefined && (await inputs.knows(options.id))
    if (!isSentAgain) await engine.tenants?.assertAdmits(session)
    const { input, isNew } = await inputs.admit(text, options)
    if (isNew && input.delivery === "now") lock.stop()
    // If the answer to a write is lost, the write is sent twice, and the input is not new. A worker has already been
    // requested for this input.
    if (isNew || input.state === "pending") queuedRuns.start()
    const { id, seq, state } = input
    return { id, seq, state }
  }

  async function interrupt({ clear = false }: { clear?: boolean } = {}): Promise<Input[]> {
    let cleared: Input[] = []
    const isOwn = lock.released !== undefined
    try {
      if (clear) cleared = await inputs.clear()
      else await inputs.pause()
    } finally {
      // The run ends even if the store cannot be written to.
      await queuedRuns.stop()
    }
    // If the calls of a killed run cannot be closed now, the next start closes them.
    const settle = () =>
      settleKilled(store).then(
        () => {},
        () => {},
      )
    if (!isOwn) await stopElsewhere({ store, sessionID, holder }, settle)
    // The run claimed these inputs but did not deliver them.
    if (clear) return [...cleared, ...(await inputs.clear())]
    // An input that was sent after the pause has resumed the queue.
    if (await inputs.hasNext()) await queuedRuns.request()
    return []
  }

  async function update({ title, agent, model }: SessionChange): Promise<Session> {
    const change = async () => {
      const { session } = conversation
      conversation.session = {
        ...session,
        title: title ?? session.title,
        agent: agent ?? session.agent,
        model: model === undefined ? session.model : parseModelName(model),
        time: updateTime(session),
      }
      await recorder.session(conversation.session)
      return conversation.session
    }
    // A run of this engine continues with the new title.
    if (agent === undefined && model === undefined && lock.released) return change()
    return alone(async () => {
      const { session } = conversation
      const chosen = model === undefined ? session : { ...session, model: parseModelName(model) }
      const isChosen = agent !== undefined || model !== undefined
      if (isChosen) await engine.model(chosen, engine.agent(agent ?? session.agent))
      return change()
    })
  }

  async function compact(given: AbortSignal | undefined): Promise<CompactionResult> {
    return alone(async (stopped) => {
      const signal = given ? AbortSignal.any([stopped, given]) : stopped
      const { session } = conversation
      await engine.tenants?.assertNotExhausted(session)
      const agent = engine.agent(session.agent)
      const model = await engine.model(session, agent)
      const result = await compactConversation(conversation, { agent, model, auto: false, signal })
      conversation.session = { ...session, time: updateTime(session) }
      await recorder.session(conversation.session)
      return result
    })
  }

  function goBack(direction: Direction, choice: UndoOptions = {}): Promise<UndoResult> {
    return alone(() => undoTurn(conversation, direction, choice))
  }

  /** Runs `work` with exclusive access to the session. */
  async function alone<T>(work: (stopped: AbortSignal) => Promise<T>): Promise<T> {
    engine.assertOpen()
    const held = lock.acquire()
    try {
      return await whileHeld(held, () => work(held.stopped))
    } finally {
      held.release()
    }
  }

  /**
   * Waits until the processes and temporary files of killed runs have been cleaned up, then runs `work` with the
   * session's lease and its current state. Stops the work if the lease is lost or another process interrupts the
   * session.
   */
  async function whileHeld<T>({ stop }: HeldLock, work: () => Promise<T>, limit?: LeaseLimit): Promise<T> {
    /** Stops the work and the queued runs if another process has interrupted the session. */
    async function stopIfAsked(lease: Lease): Promise<void> {
      // If the store cannot be read, the work fails at its next write anyway.
      if (!(await store.isStopping(lease).catch(() => false))) return
      isInterrupted = true
      await queuedRuns.stop()
    }
    await engine.cleared
    try {
      const { settle } = conversation
      const passesOn = () => isPassedOn
      return await withLease({ store, sessionID, holder, limit, settle, passesOn, release }, (lease) => {
        conversation.lease = lease
        engine.leases.set(sessionID, lease)
        lease.lost?.addEventListener("abort", stop, { once: true })
        const unwatch = store.watchControl((change) => {
          if (!change || (change.sessionID === sessionID && change.what === "lease")) void stopIfAsked(lease)
        })
        if (lease.isReserved) void stopIfAsked(lease)
        const begin = async () => {
          await conversation.catchUp()
          await finishRestoring(conversation)
          return work()
        }
        return begin().finally(unwatch)
      })
    } finally {
      engine.leases.delete(sessionID)
      recorder.stopStreaming()
      if (!conversation.lease?.lost?.aborted) conversation.lease = undefined
    }
  }

  return {
    id: sessionID,
    info: () => conversation.session,
    update,
    send,
    inputs: {
      list: inputs.pending,
      async edit(id, edit) {
        const edited = await inputs.edit(id, edit)
        if (edit.held === false) await queuedRuns.request()
        return edited
      },
      withdraw: inputs.withdraw,
      async resume() {
        await inputs.resume()
        await queuedRuns.request()
      },
    },
    events({ signal, ...options } = {}) {
      engine.assertOpen()
      const ends = signal ? AbortSignal.any([engine.ended, signal]) : engine.ended
      const { relay, otherRequests } = engine
      const parts = relay ? { ...recorder, ...relay.partsOf(sessionID, recorder) } : recorder
      const onEnd = relay?.follow(sessionID)
      const from = { store, bus, parts, otherRequests, onEnd }
      return streamSessionEvents(from, sessionID, { ...options, signal: ends })
    },
    get isActive() {
      return queuedRuns.isActive
    },
    streaming: recorder.streaming,
    wait: queuedRuns.wait,
    work,
    interrupt,
    prompt,
    abort: queuedRuns.stop,
    messages: (page = {}) => readPage(page),
    todos: () => store.todos(sessionID),
    sequence: () => store.sequence(sessionID),
    compact: ({ signal } = {}) => compact(signal),
    undo: (options) => goBack("undo", options),
    redo: (options) => goBack("redo", options),
    finishRestoring: () => alone(async () => {}),
  }
}

/** A prompt whose texts are read after the session's lease has been acquired. */
interface QueuedPrompt {
  /** Returns the texts, or rejects with {@link NothingToRun}. */
  read(): Promise<Said[]>
  options: PromptOptions
  /** Signal that interrupts the run when aborted. */
  signal: AbortSignal
  /** Whether the run must not start, and its inputs stay in the queue, if the session cannot be used now. */
  ifFree?: boolean
}

/** Returns true if a run cannot start now, but may start later. */
function mustWait(error: unknown): boolean {
  return (
    error instanceof SessionHeldError ||
    (error instanceof TenantLimitError && error.code === "tenant.sessions")
  )
}

/** Thrown if no input can be claimed, if no run must continue, or if the run was stopped before it claimed an input. */
class NothingToRun extends Error {}

/**
 * Starts measuring a run. `workMs` returns the time so far in milliseconds, excluding the time that the session or a
 * subagent's session below it spends waiting for the user.
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

/** Returns the events of one session from now until its `run.completed`. Leaving the loop early calls `onLeave`. */
function promptEvents(bus: Bus, sessionID: string, onLeave: () => void): AsyncIterableIterator<TackleEvent> {
  const channel = createChannel<TackleEvent>(() => {
    unsubscribe()
    onLeave()
  })
  const unsubscribe = bus.follow(sessionID, (event) => {
    channel.push(event)
    if (event.type !== "run.completed") return
    unsubscribe()
    channel.end()
  })
  return channel
}

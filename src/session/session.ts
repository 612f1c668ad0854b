import type { Direction, UndoChoice } from "../files/undo.ts"
import type { Session } from "../schema/session.ts"
import type { CompactionResult } from "./compact.ts"
import { compactConversation } from "./compact-conversation.ts"
import { openConversation } from "./conversation.ts"
import { concludeBroken } from "./ending.ts"
import { eventStream } from "./event-stream.ts"
import type { PromptOptions, PromptRun, SessionHandle } from "./handle.ts"
import { withLease } from "./lease.ts"
import { runPrompt } from "./run-prompt.ts"
import type { SessionServices } from "./services.ts"
import { endTurn } from "./turn-patch.ts"
import { createTurnstile } from "./turnstile.ts"
import { type UndoResult, undoTurn } from "./undo.ts"

/** A handle on a session that is in the store. */
export function openSession(initial: Session, services: SessionServices): SessionHandle {
  const { store, bus } = services
  const { id: sessionID } = initial
  const conversation = openConversation(initial, services)
  const { recorder, files, readPage } = conversation
  const turnstile = createTurnstile(sessionID)

  function prompt(text: string, options: PromptOptions = {}): PromptRun {
    services.assertOpen()
    // Throws for what is no signal, before anybody is held up by this prompt.
    const given = options.signal && AbortSignal.any([options.signal])
    const { stopped, stop, leave } = turnstile.enter()
    const signal = given ? AbortSignal.any([stopped, given]) : stopped
    const events = eventStream(bus, sessionID, stop)
    const started = Date.now()
    const completed = whileHeld(() => runPrompt(conversation, services, { text, options, signal }))
      .catch((error: unknown) => {
        // What could not be stored did not happen: the next prompt goes on from the store, and settles what is open there.
        conversation.forget()
        return concludeBroken({ bus, sessionID, started }, error)
      })
      .then((event) => {
        leave()
        endTurn(sessionID, services)
        // A subagent's work is seldom taken up again: what it read need not stay in memory till then.
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
      const agent = services.agent(session.agent)
      const model = await services.model(session, agent)
      const result = await compactConversation(conversation, services, { agent, model, auto: false, signal })
      conversation.session = { ...session, time: { ...session.time, updated: Date.now() } }
      await recorder.session(conversation.session)
      return result
    })
  }

  function goBack(direction: Direction, choice: UndoChoice = {}): Promise<UndoResult> {
    return alone(async () => {
      await conversation.catchUp()
      const { contents } = services
      const { trackTemporary } = files
      const options = { direction, choice, readPage, contents, recorder, trackTemporary }
      const { session, result } = await undoTurn(conversation.session, options)
      conversation.session = session
      return result
    })
  }

  /** Runs work that writes the session, while nobody else does. */
  async function alone<T>(work: (stopped: AbortSignal) => Promise<T>): Promise<T> {
    services.assertOpen()
    const { stopped, leave } = turnstile.enter()
    try {
      return await whileHeld(() => work(stopped))
    } finally {
      leave()
    }
  }

  /** What runs of this session left is out of the way, and no other engine writes it. */
  async function whileHeld<T>(work: () => Promise<T>): Promise<T> {
    await services.cleared
    const { holder } = services
    return withLease({ store, sessionID, holder, settle: conversation.settle }, work)
  }

  return {
    id: sessionID,
    info: () => conversation.session,
    prompt,
    abort: turnstile.abort,
    messages: (page = {}) => readPage(page),
    compact: ({ signal } = {}) => compact(signal),
    undo: (options) => goBack("undo", options),
    redo: (options) => goBack("redo", options),
  }
}

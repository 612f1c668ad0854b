import type { Bus } from "../event/bus.ts"
import type { EventInput } from "../event/events.ts"
import type { Message } from "../schema/message.ts"
import type { Part } from "../schema/part.ts"
import type { Session } from "../schema/session.ts"
import type { Todo } from "../schema/todo.ts"
import type { Change, CommitOptions, Store } from "../store/store.ts"
import type { SecretMask } from "../tool/secrets.ts"

/**
 * The one way in which a session is written: committed first, announced then, and all of it in the order of the calls.
 * Each method resolves when the commit holds and rejects when the store refused; then nothing is announced. What is asked
 * for side by side is one transaction: all of it holds, or none.
 */
export interface Recorder {
  session(session: Session): Promise<void>
  /** New or changed messages and parts, in one transaction. `durable`: it has to survive a loss of power. */
  write(written: Written & CommitOptions): Promise<void>
  /**
   * The same for what nothing waits for: in one transaction with the next write, or with all that was noted in the same
   * turn of the event loop. Where it cannot be stored, the next write is refused too.
   */
  note(written: Written): void
  removeParts(parts: readonly Part[]): Promise<void>
  todos(todos: readonly Todo[]): Promise<void>
  /** Text that streams in: announced, and stored with its part's next state. */
  delta(partID: string, field: "text" | "raw", delta: string): void
}

/** Messages and parts as they are now. `created` says that the messages are new. */
interface Written {
  messages?: readonly Message[]
  created?: boolean
  parts?: readonly Part[]
}

/** What is stored, and told of afterwards. */
interface Step {
  changes: Change[]
  events: EventInput[]
}

/** One that waits for its transaction. */
interface WaitingStep extends Step {
  durable: boolean
  /** Who is told that it holds and was announced, or why nothing of it was stored. */
  waiter?: { resolve(): void; reject(error: unknown): void }
}

/** The recorder of one session. It orders its own calls alone: a second one would not know of them. */
export function createRecorder({
  sessionID,
  store,
  bus,
  mask,
}: {
  sessionID: string
  store: Store
  bus: Bus
  /** For text that streams in: the store and the bus hide what comes whole. */
  mask?: SecretMask | undefined
}): Recorder {
  let waiting: WaitingStep[] = []
  let committing = false
  let noted: Step = { changes: [], events: [] }
  let noting: NodeJS.Immediate | undefined
  /** Why what was noted could not be stored, until somebody was told. */
  let lost: { error: unknown } | undefined
  const deltas = createDeltas(flush, mask)

  function note(changes: readonly Change[], events: readonly EventInput[]): void {
    // Deltas that came before this change are announced before it, those that come from now on after it.
    const earlier = deltas.take(changes.flatMap((change) => (change.kind === "part" ? [change.part.id] : [])))
    for (const { partID, field, text } of earlier) {
      noted.events.push({ type: "part.delta", sessionID, partID, field, delta: text })
    }
    noted.changes.push(...changes)
    noted.events.push(...events)
  }

  /** For what nobody waits for: the next write tells why it could not be stored. */
  function flush(): void {
    note([], [])
    enqueue({ durable: false })
  }

  function commit(
    changes: readonly Change[],
    events: readonly EventInput[],
    { durable = false }: CommitOptions = {},
  ): Promise<void> {
    note(changes, events)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    enqueue({ durable, waiter: { resolve, reject } })
    return promise
  }

  function enqueue(how: Omit<WaitingStep, keyof Step>): void {
    clearImmediate(noting)
    noting = undefined
    waiting.push({ ...noted, ...how })
    noted = { changes: [], events: [] }
    if (committing) return
    committing = true
    // Once everything that can go on now has come to its next write, such as the calls of a step side by side.
    queueMicrotask(() => process.nextTick(() => void commitAll()))
  }

  /** Never rejects: whoever asked for a write hears of it. */
  async function commitAll(): Promise<void> {
    while (waiting.length > 0) {
      const steps = waiting
      waiting = []
      try {
        await commitTogether(steps)
      } catch (error) {
        tell(steps, error)
        continue
      }
      steps.forEach(announce)
    }
    committing = false
  }

  function tell(steps: readonly WaitingStep[], error: unknown): void {
    const waiters = steps.flatMap(({ waiter }) => waiter ?? [])
    if (waiters.length === 0) lost ??= { error }
    for (const waiter of waiters) waiter.reject(error)
  }

  /** In one transaction, which saves all but one of the waits for the disk. */
  async function commitTogether(steps: readonly WaitingStep[]): Promise<void> {
    const before = lost
    lost = undefined
    if (before) throw before.error
    const changes = latest(steps.flatMap(({ changes }) => changes))
    if (changes.length === 0) return
    await store.commit(changes, { durable: steps.some(({ durable }) => durable) })
  }

  function announce(step: WaitingStep): void {
    try {
      for (const event of step.events) bus.publish(event)
      step.waiter?.resolve()
    } catch (error) {
      tell([step], error)
    }
  }

  return {
    session: (session) =>
      commit([{ kind: "session", session }], [{ type: "session.updated", sessionID, session }]),
    write({ durable = false, ...written }) {
      const { changes, events } = stepOf(written, sessionID)
      return commit(changes, events, { durable })
    },
    note(written) {
      const { changes, events } = stepOf(written, sessionID)
      note(changes, events)
      noting ??= setImmediate(flush)
    },
    removeParts(parts) {
      return commit(
        parts.map(({ id, messageID }) => ({ kind: "part.remove", sessionID, messageID, partID: id })),
        parts.map(({ id, messageID }) => ({ type: "part.removed", sessionID, messageID, partID: id })),
      )
    },
    todos: (todos) =>
      commit([{ kind: "todos", sessionID, todos }], [{ type: "todo.updated", sessionID, todos: [...todos] }]),
    delta: deltas.add,
  }
}

/** Without the states of a part that a later one in the same transaction overtakes. */
function latest(changes: readonly Change[]): Change[] {
  const seen = new Set<string>()
  const kept: Change[] = []
  for (const change of changes.toReversed()) {
    if (change.kind === "part") {
      if (seen.has(change.part.id)) continue
      seen.add(change.part.id)
    }
    kept.push(change)
  }
  return kept.reverse()
}

function stepOf({ messages = [], created = false, parts = [] }: Written, sessionID: string): Step {
  return {
    changes: [
      ...messages.map((message) => ({ kind: "message", message }) as const),
      ...parts.map((part) => ({ kind: "part", part }) as const),
    ],
    events: [
      ...messages.map(
        (message) => ({ type: created ? "message.created" : "message.updated", sessionID, message }) as const,
      ),
      ...parts.map((part) => ({ type: "part.updated", sessionID, part }) as const),
    ],
  }
}

/** Text that streamed into one part. */
interface Delta {
  partID: string
  field: "text" | "raw"
  text: string
}

/** Text that streams in and was not announced yet. */
export interface Deltas {
  add(partID: string, field: Delta["field"], text: string): void
  /** Those that wait, which then wait no more. `closing`: parts whose new state comes next, so that nothing is held. */
  take(closing: readonly string[]): Delta[]
}

/** Deltas of one part are joined and announced at most this often: thirty times a second is as smooth as eyes need. */
const intervalMs = 33

/**
 * Joins deltas by part; `onDue` is called when some have waited for the interval. An end that may become a secret waits
 * for what follows it.
 */
export function createDeltas(onDue: () => void, mask: SecretMask | undefined): Deltas {
  let waiting = new Map<string, Delta>()
  let timer: NodeJS.Timeout | undefined

  return {
    take(closing) {
      clearTimeout(timer)
      timer = undefined
      if (waiting.size === 0) return []
      const taken = [...waiting.values()]
      waiting = new Map()
      if (!mask || mask.empty) return taken
      return taken.flatMap((delta) => {
        const { shown, held } = mask.split(delta.text)
        const whole = closing.includes(delta.partID)
        if (held !== "" && !whole) waiting.set(delta.partID, { ...delta, text: held })
        const text = whole ? shown + held : shown
        return text === "" ? [] : [{ ...delta, text }]
      })
    },
    add(partID, field, text) {
      const entry = waiting.get(partID)
      if (entry) entry.text += text
      else waiting.set(partID, { partID, field, text })
      timer ??= setTimeout(onDue, intervalMs)
    },
  }
}

import type { Bus } from "../event/bus.ts"
import type { EventInput } from "../event/events.ts"
import type { Message } from "../schema/message.ts"
import type { Part } from "../schema/part.ts"
import type { Session } from "../schema/session.ts"
import type { Todo } from "../schema/todo.ts"
import type { Change, CommitOptions, Store } from "../store/store.ts"
import type { SecretMask } from "../tool/secrets.ts"

/**
 * Provides the only way to write a session. Changes are first committed and then announced, in the order of the calls.
 * Each promise resolves after the commit. If the store rejects the commit, the promise rejects and nothing is
 * announced. Parallel calls share one transaction, which succeeds or fails as a whole.
 */
export interface Recorder {
  session(session: Session): Promise<void>
  /** Stores new or changed messages and parts in one transaction. A `durable` transaction survives a power loss. */
  write(written: Written & CommitOptions): Promise<void>
  /**
   * Stores messages and parts without waiting. They are committed with the next write or with all other notes of the
   * same turn of the event loop. If that transaction fails, the next write also fails.
   */
  note(written: Written): void
  removeParts(parts: readonly Part[]): Promise<void>
  todos(todos: readonly Todo[]): Promise<void>
  /** Announces streamed text. The text is stored with the next state of its part. */
  delta(partID: string, field: "text" | "raw", delta: string): void
}

/** Messages and parts in their current state. `created` is true for new messages. */
interface Written {
  messages?: readonly Message[]
  created?: boolean
  parts?: readonly Part[]
}

/** Changes to store, and the events to publish afterwards. */
interface Step {
  changes: Change[]
  events: EventInput[]
}

/** A step that waits for its transaction. */
interface WaitingStep extends Step {
  durable: boolean
  /** Resolves when the step is stored and announced. Rejects with the reason if the step cannot be stored. */
  waiter?: { resolve(): void; reject(error: unknown): void }
}

/** Creates the recorder of one session. It orders only its own calls, so there must be only one per session. */
export function createRecorder({
  sessionID,
  store,
  bus,
  mask,
}: {
  sessionID: string
  store: Store
  bus: Bus
  /** Masks streamed text. The store and the bus mask everything else. */
  mask?: SecretMask | undefined
}): Recorder {
  let waiting: WaitingStep[] = []
  let committing = false
  let noted: Step = { changes: [], events: [] }
  let noting: NodeJS.Immediate | undefined
  /** The first error for which no caller was waiting. The next write reports it. */
  let lost: { error: unknown } | undefined
  const deltas = createDeltas(flush, mask)

  function note(changes: readonly Change[], events: readonly EventInput[]): void {
    // Earlier deltas are announced before this change, later ones after it.
    const earlier = deltas.take(changes.flatMap((change) => (change.kind === "part" ? [change.part.id] : [])))
    for (const { partID, field, text } of earlier) {
      noted.events.push({ type: "part.delta", sessionID, partID, field, delta: text })
    }
    noted.changes.push(...changes)
    noted.events.push(...events)
  }

  /** Commits changes for which no caller waits. The next write reports an error. */
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
    // Waits until all code that can run now has reached its next write, such as the parallel calls of a step.
    queueMicrotask(() => process.nextTick(() => void commitAll()))
  }

  /** Commits all waiting steps. Never rejects, because the callers of the writes receive the error. */
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

  /** Commits several steps in one transaction, to wait for the disk only once. */
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

/** Drops states of a part that are replaced later in the same transaction. */
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

/** Streamed text that has not been announced yet. */
export interface Deltas {
  add(partID: string, field: Delta["field"], text: string): void
  /**
   * Removes and returns the waiting deltas. `closing` contains the parts whose new state follows. Their deltas are
   * returned completely.
   */
  take(closing: readonly string[]): Delta[]
}

/**
 * Interval in milliseconds at which the deltas of a part are joined and announced. 30 updates per second look smooth.
 */
const intervalMs = 33

/**
 * Creates a buffer that joins deltas by part. Calls `onDue` when a delta has waited for the interval. Holds back the
 * end of the text if it could be the start of a secret.
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

import type { Bus } from "../event/bus.ts"
import type { EventInput, TackleEvent } from "../event/events.ts"
import { isStreaming, withDelta } from "../event/part-delta.ts"
import type { Input } from "../schema/input.ts"
import type { Message } from "../schema/message.ts"
import type { Part } from "../schema/part.ts"
import type { Session } from "../schema/session.ts"
import type { Todo } from "../schema/todo.ts"
import type { Change, CommitOptions, Lease, SequencedChange, Store } from "../store/store.ts"
import type { SecretMask } from "../tool/secrets.ts"
import { eventOf, type StreamingParts } from "./session-events.ts"

/**
 * Writes a session and its messages, parts and to-do list. Changes are first committed and then announced, in the order
 * in which the methods were called. Each promise resolves when its changes are stored and announced. If the store
 * rejects the commit, the promise rejects and nothing is announced. Parallel calls share one transaction, which
 * succeeds or fails as a whole.
 */
export interface Recorder extends StreamingParts {
  session(session: Session): Promise<void>
  /**
   * Stores new or changed messages, parts and inputs, and the session, in one transaction. A `durable` transaction
   * survives a power loss.
   */
  write(written: Written & Pick<CommitOptions, "durable">): Promise<void>
  /**
   * Stores the given objects without waiting. They are committed together with the next write, or after the time
   * `Store.noteMs`. If they are committed without a write and the transaction fails, the next write fails.
   */
  note(written: Written): void
  /** Commits the noted objects and ends the run's lease, in one transaction. `also`: see `CommitOptions`. */
  release(also?: CommitOptions["also"]): Promise<void>
  removeParts(parts: readonly Part[]): Promise<void>
  todos(todos: readonly Todo[]): Promise<void>
  /** Announces streamed text. The text is stored with the next state of its part. */
  delta(partID: string, field: "text" | "raw", delta: string): void
  /** Forgets the parts that a run could not complete, for example because it lost its lease. */
  stopStreaming(): void
}

/** A session, messages, parts and inputs in their current state. `created` is true for new messages. */
interface Written {
  session?: Session
  /** Inputs that become one of the messages. */
  inputs?: readonly Input[]
  messages?: readonly Message[]
  created?: boolean
  parts?: readonly Part[]
}

/** A change to store, and the event to publish afterwards. Streamed text has an event but no change. */
interface Entry {
  change?: Change
  event: EventInput
}

/** Entries that wait for their transaction. */
interface WaitingStep {
  entries: Entry[]
  durable: boolean
  /** The lease at the time of the write. If this lease is no longer valid, the store rejects the step. */
  lease: Lease | undefined
  /** Set if the step ends the lease. */
  release?: Pick<CommitOptions, "also">
  /** Resolves when the step is stored and announced. Rejects with the reason if the step cannot be stored. */
  waiter?: { resolve(): void; reject(error: unknown): void }
}

/**
 * Creates the recorder for one session. A recorder orders only its own calls, so a session must not have more than one
 * recorder.
 */
export function createRecorder({
  sessionID,
  store,
  bus,
  mask,
  lease = () => undefined,
}: {
  sessionID: string
  store: Store
  bus: Bus
  /** Returns the lease of the current run. */
  lease?: () => Lease | undefined
  /** Masks streamed text. The store and the bus mask everything else. */
  mask?: SecretMask | undefined
}): Recorder {
  const waiting: WaitingStep[] = []
  /** Set while steps are committed. Resolves when they are announced. */
  let committing: Promise<void> | undefined
  let noted: Entry[] = []
  let noting: NodeJS.Immediate | NodeJS.Timeout | undefined
  /** The first error for which no caller was waiting. The next write reports it. */
  let lost: { error: unknown } | undefined
  const deltas = createDeltas(flush, mask, store.noteMs)
  /** Parts that are being streamed, with the text announced so far. */
  const streaming = new Map<string, Part>()
  /** Streamed text that was not announced, because the lease may have expired. */
  let unsent: EventInput[] = []

  function note(entries: readonly Entry[]): void {
    // Earlier deltas are announced before this change, and later deltas after it.
    const earlier = deltas.take(
      entries.flatMap(({ change }) => (change?.kind === "part" ? [change.part.id] : [])),
    )
    for (const { partID, field, text } of earlier) {
      noted.push({ event: { type: "part.delta", sessionID, partID, field, delta: text } })
    }
    noted.push(...entries)
  }

  /** Commits changes for which no caller waits. If the commit fails, the next write reports the error. */
  function flush(): void {
    note([])
    enqueue({ durable: false })
  }

  function commit(
    entries: readonly Entry[],
    { durable = false }: Pick<CommitOptions, "durable"> = {},
  ): Promise<void> {
    note(entries)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    enqueue({ durable, waiter: { resolve, reject } })
    return promise
  }

  function enqueue(how: Omit<WaitingStep, "entries" | "lease">): void {
    if (store.noteMs === undefined) clearImmediate(noting as NodeJS.Immediate | undefined)
    else clearTimeout(noting as NodeJS.Timeout | undefined)
    noting = undefined
    waiting.push({ entries: noted, lease: lease(), ...how })
    noted = []
    if (committing) return
    const { promise, resolve } = Promise.withResolvers<void>()
    committing = promise
    // Waits until all code that can run now, such as the parallel calls of a step, has reached its next write.
    queueMicrotask(() => process.nextTick(() => void commitAll().then(resolve)))
  }

  /** Commits all waiting steps. Never rejects, because the callers of the writes receive the error. */
  async function commitAll(): Promise<void> {
    while (waiting.length > 0) {
      const [{ lease: present } = {}] = waiting
      const other = waiting.findIndex((step) => step.lease !== present)
      const steps = waiting.splice(0, other < 0 ? waiting.length : other)
      let sequences: Sequences
      try {
        sequences = await commitTogether(steps)
      } catch (error) {
        tell(steps, error)
        continue
      }
      for (const step of steps) announce(step, sequences)
    }
    committing = undefined
  }

  function tell(steps: readonly WaitingStep[], error: unknown): void {
    const waiters = steps.flatMap(({ waiter }) => waiter ?? [])
    if (waiters.length === 0) lost ??= { error }
    for (const waiter of waiters) waiter.reject(error)
  }

  /** Commits several steps in one transaction, to wait for the disk only once. */
  async function commitTogether(steps: readonly WaitingStep[]): Promise<Sequences> {
    const before = lost
    lost = undefined
    if (before) throw before.error
    const changes = latest(steps.flatMap(({ entries }) => entries.flatMap(({ change }) => change ?? [])))
    const release = steps.find((step) => step.release)?.release
    if (changes.length === 0 && !release) return new Map()
    const sequences = await store.commit(changes, {
      durable: steps.some(({ durable }) => durable),
      lease: steps[0]?.lease,
      releases: release !== undefined,
      ...release,
    })
    return new Map(changes.map((change, index) => [change, sequences[index] ?? 0]))
  }

  function announce(step: WaitingStep, sequences: Sequences): void {
    // If another process may have taken over the session, clients must not receive further text of this run.
    const isCurrent = step.lease?.isCurrent?.() ?? true
    try {
      for (const { change, event } of step.entries) {
        if (!change && !isCurrent) {
          unsent.push(event)
          continue
        }
        if (!change) for (const earlier of unsent.splice(0)) watchStreaming(bus.publish(earlier))
        const seq = change && sequences.get(change)
        watchStreaming(bus.publish(seq === undefined ? event : { ...event, seq }))
      }
      step.waiter?.resolve()
    } catch (error) {
      tell([step], error)
    }
  }

  function watchStreaming(event: TackleEvent): void {
    if (event.type === "part.updated" || event.type === "part.removed") {
      // The new state of the part contains this text.
      const id = event.type === "part.updated" ? event.part.id : event.partID
      unsent = unsent.filter((delta) => delta.type !== "part.delta" || delta.partID !== id)
    }
    if (event.type === "part.updated") {
      if (isStreaming(event.part)) streaming.set(event.part.id, event.part)
      else streaming.delete(event.part.id)
    } else if (event.type === "part.removed") {
      streaming.delete(event.partID)
    } else if (event.type === "part.delta") {
      const part = streaming.get(event.partID)
      if (part) streaming.set(part.id, withDelta(part, event))
    }
  }

  return {
    session: (session) => commit([entryOf({ kind: "session", session })]),
    write({ durable = false, ...written }) {
      return commit(entriesOf(written), { durable })
    },
    note(written) {
      note(entriesOf(written))
      noting ??= store.noteMs === undefined ? setImmediate(flush) : setTimeout(flush, store.noteMs)
    },
    release(also) {
      note([])
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      enqueue({ durable: false, waiter: { resolve, reject }, release: { also } })
      return promise
    },
    removeParts(parts) {
      return commit(
        parts.map(({ id, messageID }) => entryOf({ kind: "part.remove", sessionID, messageID, partID: id })),
      )
    },
    todos: (todos) => commit([entryOf({ kind: "todos", sessionID, todos })]),
    delta: deltas.add,
    streaming: () => ((lease()?.isCurrent?.() ?? true) ? [...streaming.values()] : []),
    stopStreaming() {
      streaming.clear()
      unsent = []
    },
    announced: async () => committing,
  }
}

/** Returns the changes without part states that a later change in the same transaction replaces. */
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

/** Sequence numbers of stored changes. A change that a later change in its transaction replaced has no number. */
type Sequences = ReadonlyMap<Change, number>

function entryOf(change: SequencedChange["change"], created = false): Entry {
  return { change, event: eventOf(change, created) }
}

function entriesOf({ session, messages = [], created = false, parts = [], inputs = [] }: Written): Entry[] {
  return [
    ...(session ? [entryOf({ kind: "session", session })] : []),
    ...inputs.map((input) => entryOf({ kind: "input", input })),
    ...messages.map((message) => entryOf({ kind: "message", message }, created)),
    ...parts.map((part) => entryOf({ kind: "part", part })),
  ]
}

/** Text that was streamed into one part. */
interface Delta {
  partID: string
  field: "text" | "raw"
  text: string
}

/**
 * Minimum time in milliseconds between two announcements of streamed text. Shorter than the interval at which
 * `model/http-fetch.ts` delivers text, so text rarely waits here.
 */
const intervalMs = 25

/**
 * Creates a buffer that joins deltas by part. Calls `onDue` when the waiting deltas may be announced. Holds back
 * the end of the text if it could be the start of a secret.
 */
function createDeltas(onDue: () => void, mask: SecretMask | undefined, noteMs = 0) {
  let waiting = new Map<string, Delta>()
  let timer: NodeJS.Timeout | undefined
  /** Time at which the next deltas may be announced. */
  let due = 0

  return {
    /**
     * Removes and returns the waiting deltas. `closing` contains the ids of the parts whose new state is announced
     * next. All deltas of these parts are returned.
     */
    take(closing: readonly string[]): Delta[] {
      clearTimeout(timer)
      timer = undefined
      if (waiting.size === 0) return []
      due = performance.now() + intervalMs
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
    add(partID: string, field: Delta["field"], text: string): void {
      const entry = waiting.get(partID)
      if (entry) entry.text += text
      else waiting.set(partID, { partID, field, text })
      // Waits longer after the arguments of a call, so that one commit can store the call and its start.
      const pauseMs = field === "raw" ? noteMs : 0
      timer ??= setTimeout(onDue, Math.max(pauseMs, due - performance.now()))
    },
  }
}

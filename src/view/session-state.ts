import type { EventOf, TackleEvent } from "../event/events.ts"
import { withDelta } from "../event/part-delta.ts"
import type { Input } from "../schema/input.ts"
import type { Message, MessageWithParts } from "../schema/message.ts"
import type { Part } from "../schema/part.ts"
import type { PermissionRequest } from "../schema/permission.ts"
import type { QuestionRequest } from "../schema/question.ts"
import type { Session } from "../schema/session.ts"
import { costIn } from "../schema/spending.ts"
import type { Todo } from "../schema/todo.ts"

/**
 * The state of a session that a client displays. States are immutable: an event that changes one message creates a new
 * state with a new `messages` array. All other messages in the array are the same objects as before.
 */
export interface SessionState {
  readonly session: Session
  /** Messages from the oldest loaded one to the newest. */
  readonly messages: readonly MessageWithParts[]
  /** Parts whose message has not arrived. A resumed stream can send a part before its message. */
  readonly early?: readonly Part[]
  /** Permission requests that wait for the user, including those of subagents. The oldest comes first. */
  readonly requests: readonly PermissionRequest[]
  /** Questions that wait for the user, including those of subagents. The oldest comes first. */
  readonly questions: readonly QuestionRequest[]
  /** Pending inputs in the order of their delivery. */
  readonly inputs: readonly Input[]
  readonly todos: readonly Todo[]
  /** Subagent sessions that `task` calls started in this session or in another subagent, keyed by session id. */
  readonly subagents: ReadonlyMap<string, SubagentState>
  /** True from the first message of a run to its end. */
  readonly isRunning: boolean
  /** Event that ended the latest run, if the client received it. Undefined while a run is active. */
  readonly lastRun?: EventOf<"run.completed">
  /**
   * Most recent error that the session reported. The last message may contain the error too. The next run clears the
   * error.
   */
  readonly error?: EventOf<"session.error">["error"]
  /**
   * Messages from `firstID` on that are not loaded, and their cost with the cost of their subagents. See
   * {@link withTotalCost} and {@link dropOldMessages}.
   */
  readonly dropped?: { readonly firstID: string; readonly cost: number }
}

/** The state of a subagent's session. */
export interface SubagentState {
  readonly agent: string
  readonly parentID: string
  readonly messages: readonly MessageWithParts[]
  /** Like {@link SessionState.early}. */
  readonly early?: readonly Part[]
}

/** Creates a session's state from stored data. Data that is not given is empty. */
export function createSessionState(
  stored: Pick<SessionState, "session"> & Partial<Omit<SessionState, "subagents">>,
): SessionState {
  const state: SessionState = {
    messages: [],
    requests: [],
    questions: [],
    inputs: [],
    todos: [],
    isRunning: false,
    ...stored,
    subagents: new Map(),
  }
  return state.messages.flatMap(({ parts }) => parts).reduce(withTask, state)
}

/**
 * Returns the state after an event. Returns the same object for events from other sessions, except subagents. An event
 * may be applied more than once.
 */
export function applyEvent(state: SessionState, event: TackleEvent): SessionState {
  if (event.sessionID !== state.session.id) return applySubagentEvent(state, event)
  switch (event.type) {
    case "session.created":
    case "session.updated":
      return { ...state, session: event.session }
    case "session.deleted":
      return { ...state, isRunning: false }
    case "session.error":
      return { ...state, error: event.error }
    case "message.created":
      return begin(withMessages(state, event))
    case "message.updated": {
      const isKnown = state.messages.some(({ message }) => message.id === event.message.id)
      const [first] = state.messages
      if (!isKnown && state.dropped && first && event.message.id < first.message.id) return state
      const next = withMessages(state, event)
      // Messages that another process creates arrive as updates.
      return isKnown || event.message.role === "user" || event.message.time.completed ? next : begin(next)
    }
    case "part.updated":
      return withMessages(withTask(state, event.part), event)
    case "part.removed":
    case "part.delta":
      return withMessages(state, event)
    case "permission.asked":
    case "permission.replied":
    case "question.asked":
    case "question.replied":
    case "question.rejected":
      return applyRequestEvent(state, event)
    case "todo.updated":
      return { ...state, todos: event.todos }
    case "input.updated":
      return { ...state, inputs: withInput(state.inputs, event.input) }
    case "run.completed":
      return { ...state, isRunning: false, lastRun: event }
    default:
      return state
  }
}

function begin(state: SessionState): SessionState {
  return { ...state, isRunning: true, lastRun: undefined, error: undefined }
}

/** Adds the subagent that a `task` call started. */
function withTask(state: SessionState, part: Part): SessionState {
  const sessionID = subagentOf(part)
  if (sessionID === undefined || part.type !== "tool" || part.state.status === "pending") return state
  const { agent } = part.state.metadata ?? {}
  if (typeof agent !== "string" || state.subagents.has(sessionID)) return state
  return withSubagent(state, sessionID, { agent, parentID: part.sessionID, messages: [] })
}

/** Returns the id of the session that a `task` call started, or undefined for other parts. */
function subagentOf(part: Part): string | undefined {
  if (part.type !== "tool" || part.state.status === "pending") return undefined
  const { sessionID } = part.state.metadata ?? {}
  return typeof sessionID === "string" ? sessionID : undefined
}

/** Returns the state with older messages before those that are loaded. */
export function prependMessages(state: SessionState, older: readonly MessageWithParts[]): SessionState {
  const known = new Set(state.messages.map(({ message }) => message.id))
  const added = older.filter(({ message }) => !known.has(message.id))
  if (added.length === 0) return state
  const { dropped } = state
  const again = dropped ? added.filter(({ message }) => message.id >= dropped.firstID) : []
  return {
    ...state,
    messages: [...added, ...state.messages],
    dropped: dropped && { ...dropped, cost: dropped.cost - costOf(state.session, again) },
  }
}

/** Returns a new state whose usage is `total`, although older messages are not loaded. */
export function withTotalCost(state: SessionState, total: number): SessionState {
  const cost = Math.max(0, total - costOf(state.session, state.messages))
  return { ...state, dropped: { firstID: "", cost } }
}

/**
 * Returns the state with only the newest `kept` messages and the subagents that these messages started. This limits the
 * memory that a long session uses. The cost of dropped messages remains part of the usage.
 */
export function dropOldMessages(state: SessionState, kept: number): SessionState {
  const messages = state.messages.slice(-kept)
  const old = state.messages.slice(0, -kept)
  const [first] = old
  if (!first) return state
  const { dropped = { firstID: first.message.id, cost: 0 } } = state
  const firstID = dropped.firstID < first.message.id ? dropped.firstID : first.message.id
  return {
    ...state,
    messages,
    dropped: { firstID, cost: dropped.cost + costOf(state.session, old) },
    subagents: withoutSubagents(state.subagents, old),
  }
}

/** Removes the subagents that calls in the messages started, and all subagents that those subagents started. */
function withoutSubagents(
  subagents: SessionState["subagents"],
  messages: readonly MessageWithParts[],
): SessionState["subagents"] {
  const removed = new Set(messages.flatMap(({ parts }) => parts).map(subagentOf))
  // A subagent is added after its parent.
  for (const [id, { parentID }] of subagents) if (removed.has(parentID)) removed.add(id)
  return new Map([...subagents].filter(([id]) => !removed.has(id)))
}

/**
 * Returns the state with the stored messages of a subagent. Keeps content from events that the stored messages do not
 * contain yet.
 */
export function withSubagentMessages(
  state: SessionState,
  id: string,
  stored: readonly MessageWithParts[],
): SessionState {
  const subagent = state.subagents.get(id)
  if (!subagent) return state
  const known = new Map(subagent.messages.map((item) => [item.message.id, item]))
  const messages = stored.map((item) => {
    const present = known.get(item.message.id)
    known.delete(item.message.id)
    if (!present || isComplete(item.message)) return item
    const ids = new Set(present.parts.map((part) => part.id))
    const missed = item.parts.filter((part) => !ids.has(part.id))
    return { ...present, parts: [...missed, ...present.parts] }
  })
  const next = withSubagent(state, id, { ...subagent, messages: [...messages, ...known.values()] })
  return stored.flatMap(({ parts }) => parts).reduce(withTask, next)
}

function isComplete(message: Message): boolean {
  return isAnswer(message) && message.time.completed !== undefined
}

type RequestEvent = EventOf<
  "permission.asked" | "permission.replied" | "question.asked" | "question.replied" | "question.rejected"
>

function applyRequestEvent(state: SessionState, event: RequestEvent): SessionState {
  switch (event.type) {
    case "permission.asked":
      return { ...state, requests: withItem(state.requests, event.request) }
    case "question.asked":
      return { ...state, questions: withItem(state.questions, event.request) }
    case "permission.replied":
      return { ...state, requests: without(state.requests, event.requestID) }
    case "question.replied":
    case "question.rejected":
      return { ...state, questions: without(state.questions, event.requestID) }
  }
}

function applySubagentEvent(state: SessionState, event: TackleEvent): SessionState {
  const known = state.subagents.get(event.sessionID)
  const { parentID, agent } = known ?? parentOf(event)
  if (parentID === undefined || !(parentID === state.session.id || state.subagents.has(parentID)))
    return state
  const subagent: SubagentState = known ?? { agent, parentID, messages: [] }
  switch (event.type) {
    case "permission.asked":
    case "permission.replied":
    case "question.asked":
    case "question.replied":
    case "question.rejected":
      return withSubagent(applyRequestEvent(state, event), event.sessionID, subagent)
    case "session.created":
    case "session.updated":
      return withSubagent(state, event.sessionID, { ...subagent, agent: event.session.agent })
    case "message.created":
    case "message.updated":
    case "part.updated":
    case "part.removed":
    case "part.delta":
      return withSubagent(state, event.sessionID, withMessages(subagent, event))
    default:
      return state
  }
}

/** Returns the parent and the agent of an unknown session, if the event contains them. */
function parentOf(event: TackleEvent): { parentID?: string; agent: string } {
  if (event.type === "session.created" || event.type === "session.updated")
    return { parentID: event.session.parentID, agent: event.session.agent }
  if (event.type === "permission.asked" || event.type === "question.asked") {
    const parent = event.request.tool?.parent
    return { parentID: parent?.sessionID, agent: parent?.agent ?? "" }
  }
  return { agent: "" }
}

function withSubagent(state: SessionState, id: string, subagent: SubagentState): SessionState {
  if (state.subagents.get(id) === subagent) return state
  return { ...state, subagents: new Map(state.subagents).set(id, subagent) }
}

type MessageEvent = EventOf<
  "message.created" | "message.updated" | "part.updated" | "part.removed" | "part.delta"
>

/** The messages of a session or subagent. */
type WithMessages = Pick<SessionState, "messages" | "early">

/** Applies an event to the messages of a session or subagent. */
function withMessages<T extends WithMessages>(state: T, event: MessageEvent): T {
  const { messages, early = [] } = state
  switch (event.type) {
    case "message.created":
    case "message.updated": {
      const { message } = event
      const index = messages.findLastIndex((item) => item.message.id === message.id)
      const known = messages[index]
      if (known) return { ...state, messages: messages.with(index, { ...known, message }) }
      const [parts, others] = [
        early.filter(({ messageID }) => messageID === message.id),
        early.filter(({ messageID }) => messageID !== message.id),
      ]
      const next = messages.findLastIndex((item) => item.message.id < message.id) + 1
      return { ...state, messages: messages.toSpliced(next, 0, { message, parts }), early: others }
    }
    case "part.updated": {
      const { part } = event
      const index = messages.findLastIndex(({ message }) => message.id === part.messageID)
      const found = messages[index]
      if (found)
        return { ...state, messages: messages.with(index, { ...found, parts: withPart(found.parts, part) }) }
      // The part may belong to a message that is older than the loaded messages.
      const isOlder = messages[0] !== undefined && part.messageID < messages[0].message.id
      return isOlder ? state : { ...state, early: withPart(early, part) }
    }
    case "part.removed":
      return changePart(state, event.partID, () => undefined)
    case "part.delta":
      return changePart(state, event.partID, (part) => withDelta(part, event))
  }
}

/** Replaces a part, or adds it in the order of the ids. A resumed stream can send parts in a different order. */
function withPart(parts: readonly Part[], part: Part): Part[] {
  const index = parts.findLastIndex(({ id }) => id === part.id)
  if (index >= 0) return parts.with(index, part)
  return parts.toSpliced(parts.findLastIndex(({ id }) => id < part.id) + 1, 0, part)
}

/** Changes the part with the given id, or removes it if `change` returns undefined. */
function changePart<T extends WithMessages>(
  state: T,
  partID: string,
  change: (part: Part) => Part | undefined,
): T {
  const { messages } = state
  const index = messages.findLastIndex(({ parts }) => parts.some(({ id }) => id === partID))
  const found = messages[index]
  if (!found) return state
  const parts = found.parts.flatMap((part) => (part.id === partID ? (change(part) ?? []) : [part]))
  return { ...state, messages: replaced(messages, index, { ...found, parts }) }
}

/** Rank of each kind of delivery. Inputs with a lower rank are delivered first. */
const deliveryOrder = { now: 0, steer: 1, queue: 2 }

function withInput(inputs: readonly Input[], input: Input): readonly Input[] {
  const others = inputs.filter(({ id }) => id !== input.id)
  if (input.state !== "pending") return others
  return [...others, input].sort(
    (a, b) =>
      deliveryOrder[a.delivery] - deliveryOrder[b.delivery] || a.position - b.position || a.seq - b.seq,
  )
}

function withItem<T extends { id: string }>(items: readonly T[], item: T): readonly T[] {
  const index = items.findLastIndex(({ id }) => id === item.id)
  return replaced(items, index, item)
}

function without<T extends { id: string }>(items: readonly T[], id: string): readonly T[] {
  return items.filter((item) => item.id !== id)
}

/** Returns a copy of the list with the item at the index. An index below 0 appends the item. */
function replaced<T>(items: readonly T[], index: number, item: T): T[] {
  return index < 0 ? [...items, item] : items.with(index, item)
}

/** Tokens of the latest request, and the cost of the session and its subagents. */
export interface SessionUsage {
  /** Tokens that the latest request to the model used: its whole input and output. */
  contextTokens: number
  /** Cost in US dollars. */
  cost: number
}

/** Returns a session's usage. Messages that a fork copied cost nothing. */
export function usageOf({
  session,
  messages,
  dropped,
}: Pick<SessionState, "session" | "messages" | "dropped">): SessionUsage {
  const answers = messages.map(({ message }) => message).filter(isAnswer)
  const last = answers.findLast(({ tokens }) => tokens.input + tokens.output > 0)?.tokens
  return {
    contextTokens: last ? last.input + last.cache.read + last.cache.write + last.output + last.reasoning : 0,
    cost: costOf(session, messages) + (dropped?.cost ?? 0),
  }
}

function costOf({ time }: Session, messages: readonly MessageWithParts[]): number {
  return messages.reduce(
    (sum, entry) => (entry.message.time.created < time.created ? sum : sum + costIn(entry)),
    0,
  )
}

function isAnswer(message: Message): message is Extract<Message, { role: "assistant" }> {
  return message.role === "assistant"
}

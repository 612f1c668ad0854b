import "../util/require-node.ts"
import type { Input } from "../schema/input.ts"
import type { Message } from "../schema/message.ts"
import type { Part } from "../schema/part.ts"
import type { Grant } from "../schema/permission.ts"
import { type StoredRequest, withAnswer } from "../schema/request.ts"
import type { Session } from "../schema/session.ts"
import type { Todo } from "../schema/todo.ts"
import { currentTime } from "../util/clock.ts"
import { errorMessage } from "../util/errors.ts"
import { isProcessRunning } from "../util/process-table.ts"
import { createControlBell } from "./control-bell.ts"
import { searchByReading } from "./search.ts"
import {
  type Change,
  type Lease,
  type LeaseHolder,
  LeaseLostError,
  numbered,
  type SequencedChange,
  type Store,
  StoreError,
  sessionOf,
} from "./store.ts"
import { TenantLimitError, type UsageRecord } from "./tenants.ts"

/**
 * Creates a {@link Store} in memory, for tests and embedding. Values are converted to JSON and back, as in a
 * database. `isAlive` returns true if the holder of a lease is alive. Default: true while the holder's process runs.
 */
export function createMemoryStore({
  isAlive = isProcessRunning,
}: {
  isAlive?: (holder: LeaseHolder) => boolean
} = {}): Store {
  const sessions = new Map<string, Session>()
  const messages = new Map<string, Message>()
  const parts = new Map<string, Part>()
  const todos = new Map<string, Todo[]>()
  const grants = new Map<string, Grant>()
  const inputs = new Map<string, Input>()
  const requests = new Map<string, StoredRequest>()
  const leases = new Map<string, { holder: LeaseHolder; epoch: number; stops: boolean }>()
  const bell = createControlBell()
  const usage = new Map<string, UsageRecord>()
  let epoch = 0
  /** The last change of each object, by session. */
  const logs = new Map<string, { last: number; changes: Map<string, SequencedChange> }>()
  let closed = false

  /** Applies the change and returns a function that reverts it. */
  function apply(change: Change): () => void {
    switch (change.kind) {
      case "session":
        return set(sessions, change.session.id, change.session)
      case "message":
        requireKnown(sessions.has(change.message.sessionID), `session ${change.message.sessionID}`)
        return set(messages, change.message.id, change.message)
      case "part": {
        const { id, messageID, sessionID } = change.part
        requireKnown(messages.get(messageID)?.sessionID === sessionID, `message ${messageID} in ${sessionID}`)
        return set(parts, id, change.part)
      }
      case "part.remove": {
        requireKnown(sessions.has(change.sessionID), `session ${change.sessionID}`)
        const { sessionID, messageID } = parts.get(change.partID) ?? {}
        const owned = sessionID === change.sessionID && messageID === change.messageID
        return owned ? unset(parts, change.partID) : () => {}
      }
      case "todos":
        requireKnown(sessions.has(change.sessionID), `session ${change.sessionID}`)
        return set(todos, change.sessionID, [...change.todos])
      case "input":
        requireKnown(sessions.has(change.input.sessionID), `session ${change.input.sessionID}`)
        return set(inputs, inputKey(change.input), change.input)
      case "grant": {
        const { id, scope, sessionID } = change.grant
        if (scope === "session" && sessionID !== undefined) {
          requireKnown(sessions.has(sessionID), `session ${sessionID}`)
        }
        return set(grants, id, change.grant)
      }
      case "grant.remove":
        return unset(grants, change.grantID)
    }
  }

  /** Gives a change the next number of its session. */
  function number(change: Change): number {
    const id = sessionOf(change)
    if (id === undefined || change.kind === "grant" || change.kind === "grant.remove") return 0
    const log = logs.get(id) ?? { last: 0, changes: new Map() }
    logs.set(id, log)
    log.last += 1
    const key = objectKey(change)
    log.changes.delete(key)
    log.changes.set(key, { seq: log.last, change: copy(change) })
    return log.last
  }

  function pendingInputs(sessionID: string): Input[] {
    return [...inputs.values()]
      .filter((input) => input.sessionID === sessionID && input.state === "pending")
      .sort((a, b) => a.position - b.position || a.seq - b.seq)
      .map(copy)
  }

  function remove(id: string): void {
    sessions.delete(id)
    todos.delete(id)
    leases.delete(id)
    logs.delete(id)
    for (const [key, input] of [...inputs]) if (input.sessionID === id) inputs.delete(key)
    for (const message of [...messages.values()]) if (message.sessionID === id) messages.delete(message.id)
    for (const part of [...parts.values()]) if (part.sessionID === id) parts.delete(part.id)
    for (const [key, { asked }] of [...requests]) if (asked.sessionID === id) requests.delete(key)
    for (const grant of [...grants.values()]) {
      if (grant.scope === "session" && grant.sessionID === id) grants.delete(grant.id)
    }
    for (const session of [...sessions.values()]) if (session.parentID === id) remove(session.id)
  }

  function isCurrent({ sessionID, holder, epoch }: Lease): boolean {
    const present = leases.get(sessionID)
    return present?.holder.id === holder.id && present.epoch === epoch
  }

  /** Returns true if the lease of a request has not ended. */
  function isLeased({ asked: { sessionID }, holder, epoch }: StoredRequest): boolean {
    const present = leases.get(sessionID)
    return present?.holder.id === holder && present.epoch === epoch && isAlive(copy(present.holder))
  }

  /** Returns the number of sessions of a tenant that a live engine holds, apart from the session `except`. */
  function runningOf(tenant: string, except?: string): number {
    return [...leases].filter(([id, { holder }]) => {
      const session = sessions.get(id)
      const isRoot = session?.tenant === tenant && session.parentID === undefined
      return isRoot && id !== except && isAlive(copy(holder))
    }).length
  }

  function assertOpen(): void {
    if (closed) throw new StoreError("The store is closed.")
  }

  return {
    async commit(changes, { lease } = {}) {
      assertOpen()
      if (lease && !isCurrent(lease)) throw new LeaseLostError(lease.sessionID)
      const undo: (() => void)[] = []
      try {
        for (const change of changes) undo.push(apply(change))
      } catch (error) {
        for (const revert of undo.reverse()) revert()
        throw error instanceof StoreError ? error : new StoreError(errorMessage(error), error)
      }
      return changes.map(number)
    },
    async session(id) {
      assertOpen()
      const session = sessions.get(id)
      return session && copy(session)
    },
    async sessions(filter = {}) {
      assertOpen()
      const { worktree, parentID, limit = 100 } = filter
      return [...sessions.values()]
        .filter((session) => worktree === undefined || session.worktree === worktree)
        .filter((session) => parentID === undefined || (session.parentID ?? null) === parentID)
        .sort((a, b) => b.time.updated - a.time.updated || compare(b.id, a.id))
        .slice(0, limit)
        .map(copy)
    },
    search(query, filter) {
      return searchByReading(this)(query, filter)
    },
    async deleteSession(id) {
      assertOpen()
      if (!sessions.has(id)) return false
      remove(id)
      return true
    },
    async messages(sessionID, { after, before, limit = Number.POSITIVE_INFINITY, from = "newest" } = {}) {
      assertOpen()
      const between = [...messages.values()]
        .filter((message) => message.sessionID === sessionID)
        .filter(({ id }) => after === undefined || compare(id, after) > 0)
        .filter(({ id }) => before === undefined || compare(id, before) < 0)
        .sort((a, b) => compare(a.id, b.id))
      const chosen =
        from === "oldest" ? between.slice(0, limit) : between.slice(Math.max(0, between.length - limit))
      const byMessage = Map.groupBy(parts.values(), (part) => part.messageID)
      return chosen.map((message) => ({
        message: copy(message),
        parts: (byMessage.get(message.id) ?? []).sort((a, b) => compare(a.id, b.id)).map(copy),
      }))
    },
    async todos(sessionID) {
      assertOpen()
      return copy(todos.get(sessionID) ?? [])
    },
    async grants(scope) {
      assertOpen()
      return [...grants.values()]
        .filter((grant) =>
          grant.scope === "session"
            ? scope.sessionID !== undefined && grant.sessionID === scope.sessionID
            : grant.worktree === scope.worktree,
        )
        .sort((a, b) => a.time.created - b.time.created || compare(a.id, b.id))
        .map(copy)
    },
    async sequence(sessionID) {
      assertOpen()
      return logs.get(sessionID)?.last ?? 0
    },
    async changes(sessionID, after) {
      assertOpen()
      const changes = [...(logs.get(sessionID)?.changes.values() ?? [])]
      return changes.filter(({ seq }) => seq > after).map(copy)
    },
    // Never calls the listener, because no other engine can change this store.
    watch: () => () => {},
    watchControl: bell.add,
    async updateInputs(sessionID, named, decide, { lease, also } = {}) {
      assertOpen()
      const chosen = named === undefined ? undefined : inputs.get(inputKey({ sessionID, id: named }))
      const decided = decide({
        pending: pendingInputs(sessionID),
        named: chosen && copy(chosen),
        holder: leases.get(sessionID)?.holder,
      })
      let next = logs.get(sessionID)?.last ?? 0
      const changed = decided.map((input) => numbered(input, ++next))
      const changes = changed.map((input) => ({ kind: "input", input }) as const)
      const sequences = await this.commit(changes, { lease })
      if (changed.length > 0) await also?.()
      return changed.map((input, index) => ({ input, seq: sequences[index] ?? 0 }))
    },
    async inputs(sessionID) {
      assertOpen()
      return pendingInputs(sessionID)
    },
    async sessionsWithInputs() {
      assertOpen()
      const pending = [...inputs.values()].filter(({ state }) => state === "pending")
      return [...new Set(pending.map(({ sessionID }) => sessionID))]
    },
    async lease(sessionID, holder, limit) {
      assertOpen()
      requireKnown(sessions.has(sessionID), `session ${sessionID}`)
      if (limit && runningOf(limit.tenant, sessionID) >= limit.sessions)
        throw new TenantLimitError(limit.tenant, "sessions", limit.sessions)
      const present = leases.get(sessionID)?.holder
      if (present && present.id !== holder.id && isAlive(copy(present)))
        return { isHeld: false, holder: copy(present) }
      epoch += 1
      leases.set(sessionID, { holder: copy(holder), epoch, stops: false })
      return { isHeld: true, lease: { sessionID, holder, epoch } }
    },
    async release(lease) {
      assertOpen()
      if (isCurrent(lease)) leases.delete(lease.sessionID)
      bell.ring({ sessionID: lease.sessionID, what: "lease" })
    },
    async recover(settle) {
      for (const [sessionID, { holder }] of [...leases]) {
        if (isAlive(copy(holder))) continue
        await this.commit(settle(await this.messages(sessionID)))
        leases.delete(sessionID)
      }
      for (const [id, request] of [...requests])
        if (!request.answer && !isLeased(request)) requests.delete(id)
    },
    async holder(sessionID) {
      assertOpen()
      const present = leases.get(sessionID)?.holder
      return present && isAlive(present) ? copy(present) : undefined
    },
    async stop(sessionID) {
      assertOpen()
      const present = leases.get(sessionID)
      if (!present || !isAlive(copy(present.holder))) return undefined
      present.stops = true
      bell.ring({ sessionID, what: "lease" })
      return { sessionID, holder: copy(present.holder), epoch: present.epoch }
    },
    async isStopping(lease) {
      assertOpen()
      return isCurrent(lease) && leases.get(lease.sessionID)?.stops === true
    },
    async openRequest(request, lease) {
      assertOpen()
      if (!isCurrent(lease)) throw new LeaseLostError(lease.sessionID)
      requests.set(request.asked.id, copy(request))
      bell.ring({ sessionID: lease.sessionID, what: "request" })
    },
    async requests() {
      assertOpen()
      const open = [...requests.values()].filter((request) => !request.answer && isLeased(request))
      return open.sort((a, b) => compare(a.asked.id.slice(3), b.asked.id.slice(3))).map(copy)
    },
    async request(id) {
      assertOpen()
      const request = requests.get(id)
      return request && copy(request)
    },
    async answerRequest(id, answer) {
      assertOpen()
      const request = requests.get(id)
      if (!request || request.answer) return request && copy(request)
      if (!isLeased(request)) return undefined
      const answered = withAnswer(request, copy(answer), currentTime())
      requests.set(id, answered)
      bell.ring({ sessionID: request.asked.sessionID, what: "request" })
      return copy(answered)
    },
    async addUsage(record) {
      assertOpen()
      usage.set(`${record.tenant} ${record.day} ${record.id}`, copy(record))
    },
    async tenantUsage(tenant, day) {
      assertOpen()
      const pending = [...inputs.values()].filter(({ state }) => state === "pending")
      const records = [...usage.values()].filter((each) => each.tenant === tenant && each.day === day)
      return {
        running: runningOf(tenant),
        queued: pending.filter(({ sessionID }) => sessions.get(sessionID)?.tenant === tenant).length,
        tokens: records.reduce((sum, { tokens }) => sum + tokens, 0),
        cost: records.reduce((sum, { cost }) => sum + cost, 0),
      }
    },
    async reclaim() {
      assertOpen()
    },
    async close() {
      closed = true
    },
  }
}

function inputKey({ sessionID, id }: { sessionID: string; id: string }): string {
  return JSON.stringify([sessionID, id])
}

/** Returns the key of the object that a change writes or removes. */
function objectKey(change: SequencedChange["change"]): string {
  switch (change.kind) {
    case "message":
      return change.message.id
    case "part":
      return change.part.id
    case "part.remove":
      return change.partID
    case "input":
      return inputKey(change.input)
    case "session":
    case "todos":
      return change.kind
  }
}

function set<T>(table: Map<string, T>, id: string, value: T): () => void {
  const before = table.get(id)
  table.set(id, copy(value))
  return () => {
    if (before === undefined) table.delete(id)
    else table.set(id, before)
  }
}

function unset<T>(table: Map<string, T>, id: string): () => void {
  const before = table.get(id)
  table.delete(id)
  return () => {
    if (before !== undefined) table.set(id, before)
  }
}

function requireKnown(isKnown: boolean, what: string): void {
  if (!isKnown) throw new StoreError(`The store refused a change: ${what} does not exist.`)
}

function copy<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T
}

/** Compares strings by code units, like SQLite. */
function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

import type { Input } from "../schema/input.ts"
import type { Message, MessageWithParts } from "../schema/message.ts"
import type { Part } from "../schema/part.ts"
import type { Grant } from "../schema/permission.ts"
import type { RequestAnswer, StoredRequest } from "../schema/request.ts"
import type { Session } from "../schema/session.ts"
import type { Todo } from "../schema/todo.ts"
import { TackleError } from "../util/errors.ts"
import type { ProcessIdentity } from "../util/process-table.ts"
import type { ContentLimits, ContentStore } from "./content-store.ts"
import type { TenantUsage, UsageRecord } from "./tenants.ts"

/**
 * A change to write. Each object is written as a whole and replaces the stored object with the same id. A to-do list
 * replaces its session's list.
 */
export type Change =
  | { kind: "session"; session: Session }
  | { kind: "message"; message: Message }
  | { kind: "part"; part: Part }
  | { kind: "part.remove"; sessionID: string; messageID: string; partID: string }
  | { kind: "todos"; sessionID: string; todos: readonly Todo[] }
  | { kind: "input"; input: Input }
  | { kind: "grant"; grant: Grant }
  | { kind: "grant.remove"; grantID: string }

/** A stored change that belongs to a session, with its sequence number. */
export interface SequencedChange {
  seq: number
  change: Exclude<Change, { kind: "grant" | "grant.remove" }>
}

/** Returns the id of the session that a change belongs to, or undefined for a change to a grant. */
export function sessionOf(change: Change): string | undefined {
  switch (change.kind) {
    case "session":
      return change.session.id
    case "message":
      return change.message.sessionID
    case "part":
      return change.part.sessionID
    case "input":
      return change.input.sessionID
    case "part.remove":
    case "todos":
      return change.sessionID
    case "grant":
    case "grant.remove":
      return undefined
  }
}

/** Returns the input with the number of its first change, which is `seq` for a new input. */
export function numbered(input: Input, seq: number): Input {
  return input.seq === 0 ? { ...input, seq } : input
}

/** A session's inputs at one point in time. */
export interface CurrentInputs {
  /** Pending inputs in the order of `position`. */
  pending: Input[]
  /** The requested input, even if it is no longer pending. Undefined if no input was requested or found. */
  named: Input | undefined
  /** Holder of the session's lease, whether or not the holder is alive. */
  holder: LeaseHolder | undefined
}

/**
 * A change outside a session's history: a request was stored or answered, the lease was released, or its holder was
 * asked to stop. A listener that receives undefined must assume that any of these changes may have happened.
 */
export interface ControlChange {
  sessionID: string
  what: "request" | "lease"
}

/** Selects sessions. Default: all sessions. */
export interface SessionFilter {
  /** Selects sessions in this worktree. */
  worktree?: string
  /** Selects children of this session. `null` selects sessions without a parent. */
  parentID?: string | null
  /** Selects sessions in exactly this directory. */
  directory?: string
  /** Selects sessions in or below these directories. */
  roots?: readonly string[]
  tenant?: string
  /** Selects sessions whose last update is not later than this time, in milliseconds since the epoch. */
  updatedUntil?: number
  /** Selects the sessions after the session with this {@link ListedRow.cursor} in the list. */
  after?: string
  /**
   * Maximum number of sessions, at most {@link maxSessions}. The most recently updated sessions come first. Default:
   * 100.
   */
  limit?: number
}

/** Maximum number of sessions in one read. To read more, use `sessionPages`. */
export const maxSessions = 2000

/** A session in a list, and the position after which the next page starts. */
export interface ListedRow {
  session: Session
  /** A short text in an internal format. Stays valid if the session changes or is deleted. */
  cursor: string
}

/** Selects grants. See {@link Store.grants}. */
export interface GrantFilter {
  worktree?: string
  sessionID?: string
  withSessions?: boolean
}

/** A session that matches a search. */
export interface SearchHit extends ListedRow {
  /** The first text that contains all words, or, if no text does, the first text that contains the first word. */
  text: string
  /** Id of the message that contains the text, and its role. Absent if the text is the title. */
  messageID?: string
  role?: Message["role"]
}

/** Options for a commit. */
export interface CommitOptions {
  /**
   * Whether the commit must be on disk when the promise resolves. This takes 0.1 to 10 ms, depending on the disk.
   * Default: false.
   */
  durable?: boolean
  /** Lease of the session. If it is no longer valid, the commit rejects with {@link LeaseLostError}. */
  lease?: Lease
  /**
   * Whether to end `lease` after the changes, in the same transaction. See {@link Store.release}. The list of changes
   * may then be empty. Default: false.
   */
  releases?: boolean
  /** Called after the changes if `releases` is true. See {@link UpdateInputsOptions.also}. */
  also?: UpdateInputsOptions["also"]
}

/**
 * Runs one statement in the transaction of a write and returns its rows. The statement and the write take effect
 * together or not at all.
 */
export type TransactionQuery = (
  text: string,
  values?: readonly unknown[],
) => Promise<Record<string, unknown>[]>

/** Options for {@link Store.updateInputs}. */
export interface UpdateInputsOptions extends Pick<CommitOptions, "lease"> {
  /**
   * Called after the inputs are stored, if there are any inputs. In PostgreSQL, `also` is part of the transaction: if
   * it rejects, or sends no statement for two seconds, the transaction is rolled back. If the transaction is repeated,
   * `also` is called again. Other stores call it after the transaction, without `query`.
   */
  also?(query?: TransactionQuery): Promise<void>
}

/** Sends messages between engines. Messages are not stored, and are lost if the receiver is not connected. */
export interface Mail {
  /**
   * Sends ASCII texts of up to 7,900 characters each to the engines that listen to an address. The texts arrive in
   * order, and after the notification of every earlier commit. Throws {@link StoreError} if the database fails.
   */
  send(address: string, texts: readonly string[]): Promise<void>
  /**
   * Receives the texts for an address of up to 40 lower-case letters, digits and `_`. `onConnected` is called when
   * texts can arrive, and again each time a lost connection is restored. Returns a function that stops listening.
   */
  listen(address: string, onText: (text: string) => void, onConnected: () => void): () => void
}

/** Selects messages in a session. Default: all messages. Messages are always returned in id order. */
export interface MessagePage {
  /** Selects messages with a greater id. */
  after?: string
  /** Selects messages with a smaller id. */
  before?: string
  /** Maximum number of messages, counted from the end of the history that `from` specifies. */
  limit?: number
  /** The end from which `limit` counts. Default: `newest`. */
  from?: "newest" | "oldest"
}

/** An engine that uses a session, and the engine's process. */
export interface LeaseHolder extends ProcessIdentity {
  id: string
  /**
   * True if the engine belongs to a worker. Another worker continues its sessions, so in PostgreSQL, `Store.recover`
   * skips them until their leases have been expired for an hour.
   */
  isWorker?: boolean
  /** Name of the machine. */
  host?: string
}

/** The right of one engine to write to a session. Lasts until it is released or another engine takes over. */
export interface Lease {
  sessionID: string
  holder: LeaseHolder
  /** Number of the lease. A later lease for the session has another number or another holder. */
  epoch: number
  /** Aborts when the lease is lost. Absent in stores whose leases last as long as the process. */
  lost?: AbortSignal
  /**
   * Returns false if the lease may have expired, by this process's clock. Absent in stores whose leases last as long as
   * the process.
   */
  isCurrent?(): boolean
  /** True if {@link Store.reserve} took the lease. Its holder may have been asked to stop before the run started. */
  isReserved?: boolean
}

/** A session whose worker no longer renews its lease. */
export interface AbandonedSession {
  sessionID: string
  /** Number of the expired lease. */
  epoch: number
  /** Time at which the lease expired, in milliseconds since the epoch, by the database's clock. */
  expired: number
}

/** Limit on the number of a tenant's sessions that are leased at once. Subagent sessions do not count. */
export interface LeaseLimit {
  tenant: string
  sessions: number
}

/** Selects the sessions to lease and the inputs to claim. See {@link Store.reserve}. */
export interface Reserving {
  sessionIDs: readonly string[]
  /** Returns the engine that will run the session, or undefined if no engine can run it now. */
  holderOf(session: Session): LeaseHolder | undefined
  /** Returns the inputs to claim for the holder. */
  inputsOf(sessionID: string, pending: readonly Input[]): readonly Input[]
}

/** A session that was leased in advance. */
export interface Reserved {
  session: Session
  /** Ends the lease, unless {@link Store.lease} has returned it. */
  release(): Promise<void>
}

/** The result of {@link Store.lease}: the new lease, or the current holder. */
export type LeaseResult = { isHeld: true; lease: Lease } | { isHeld: false; holder: LeaseHolder }

/**
 * Thrown when a store for sessions or file contents cannot be opened, read or written, or rejects a change. The message
 * says what to do next.
 */
export class StoreError extends TackleError {
  constructor(message: string, cause?: unknown, code = "store") {
    super(message, { code, recoverable: false, cause })
  }

  /** Returns true for errors from a store. Works across bundles, unlike `instanceof`. */
  static isThrown(error: unknown): error is TackleError {
    return TackleError.isInstance(error) && /^store(\.|$)/.test(error.code)
  }
}

/** Thrown if the database server did not respond within an operation's time limit. */
export class StoreUnreachableError extends StoreError {
  constructor(message: string, cause: unknown) {
    super(message, cause, "store.unreachable")
  }

  static override isThrown(error: unknown): error is TackleError {
    return TackleError.isInstance(error) && error.code === "store.unreachable"
  }
}

/**
 * Thrown for a write if the database has been removed, moved or replaced while it was open. Nothing is written, because
 * the data would be lost.
 */
export class StoreRemovedError extends StoreError {
  constructor(message: string) {
    super(message, undefined, "store.removed")
  }
}

/**
 * Thrown by a write whose lease is no longer valid because another engine has taken over the session. Nothing was
 * written.
 */
export class LeaseLostError extends StoreError {
  constructor(sessionID: string) {
    super(
      `Another process has taken over session ${sessionID}, because this process appeared to have ended. ` +
        "This process can no longer write to the session. Follow the session in the other process, or send the prompt again.",
      undefined,
      "store.lease",
    )
  }
}

/**
 * Thrown when a stored message or part cannot be read. `row` identifies the message or part. Other sessions are not
 * affected.
 */
export class DamagedRowError extends StoreError {
  constructor(row: string, sessionID: string, reason: string) {
    super(
      `The ${row} in session ${sessionID} is damaged: ${reason}. Other sessions are not affected. ` +
        `Continue in a new session, or restore the database from a backup. To delete the session: tackle session delete ${sessionID}`,
    )
  }
}

/**
 * Stores sessions and grants. Every implementation passes `test/suites/store.ts`. Except in an in-memory store, a
 * resolved `commit` survives the end of the process, and a durable commit and all earlier commits survive a power loss.
 * A rejected commit changes nothing, with two exceptions: it may have been stored if the server could not be reached
 * ({@link StoreUnreachableError}), or if `also` failed outside the transaction. Reads see every earlier commit and
 * return copies.
 */
export interface Store {
  /**
   * Maximum delay in milliseconds for a change that no caller waits for, so that it can be stored with the next commit.
   * Default: until the end of the current turn of the event loop.
   */
  readonly noteMs?: number
  /**
   * Applies all changes in order, or none of them. Returns a sequence number for each change. The numbers of a session
   * start at 1 and have no gaps. Changes to grants have the number 0. Throws {@link StoreError} if the changes cannot
   * be stored.
   */
  commit(changes: readonly Change[], options?: CommitOptions): Promise<number[]>
  /** Returns the sequence number of the session's latest change, or 0 if the session does not exist. */
  sequence(sessionID: string): Promise<number>
  /**
   * Returns a session's changes with a sequence number greater than `after`, in order. Each object is returned once, in
   * its current state, with the number of its latest change.
   */
  changes(sessionID: string, after: number): Promise<SequencedChange[]>
  /**
   * Calls the listener after a change through another store object, in this or another process, and possibly also
   * without a change. `sessionIDs` contains the changed sessions, or is undefined if any session may have changed. With
   * SQLite, the delay is at most 200 ms. Returns a function that ends the watch.
   */
  watch(listener: (sessionIDs?: ReadonlySet<string>) => void): () => void
  /**
   * Calls the listener after a {@link ControlChange} by any engine, including one that shares this store object, and
   * possibly also without a change. With SQLite, the delay is at most 200 ms. The end of a killed process is not
   * reported. Returns a function that ends the watch.
   */
  watchControl(listener: (change?: ControlChange) => void): () => void
  /**
   * Passes the current inputs of a session to `decide` and stores the inputs that it returns, in one transaction. If
   * `decide` throws, nothing is stored. Calls `decide` again if the inputs change in the meantime. A new input with
   * `seq` 0 receives the number of this change. Returns the stored inputs with their sequence numbers. Throws {@link
   * LeaseLostError} if `options.lease` is no longer valid, and {@link StoreError} if the session does not exist.
   */
  updateInputs(
    sessionID: string,
    named: string | undefined,
    decide: (current: CurrentInputs) => readonly Input[],
    options?: UpdateInputsOptions,
  ): Promise<{ input: Input; seq: number }[]>
  /** Returns a session's pending inputs, sorted by position. */
  inputs(sessionID: string): Promise<Input[]>
  /** Returns the ids of all sessions with pending inputs. */
  sessionsWithInputs(): Promise<string[]>
  session(id: string): Promise<Session | undefined>
  /** Returns the first sessions of a list. Throws {@link StoreError} if the limit is above {@link maxSessions}. */
  sessions(filter?: SessionFilter): Promise<Session[]>
  /** Like `sessions`, with the positions of the sessions in the list. */
  page(filter?: SessionFilter): Promise<ListedRow[]>
  /**
   * Returns the sessions that contain all words in a query, newest first. Searches titles, texts from the user and the
   * model, names of attached files, and the tools and arguments of calls, but not outputs. The last word may be the
   * beginning of a longer word. Any text is a valid query. The result for a query without words is empty. The first
   * search takes longer, because it indexes the stored texts.
   */
  search(query: string, filter?: SessionFilter): Promise<SearchHit[]>
  /**
   * Deletes a session, all data that belongs to it, and its child sessions. Returns false if the session does not
   * exist.
   */
  deleteSession(id: string): Promise<boolean>
  /**
   * Returns messages and their parts, both in id order. The cost depends only on the size of the page. Throws {@link
   * DamagedRowError} if a message or part on the page cannot be read.
   */
  messages(sessionID: string, page?: MessagePage): Promise<MessageWithParts[]>
  todos(sessionID: string): Promise<Todo[]>
  /**
   * Returns the worktree's project grants and the session's grants, oldest first. With `withSessions`, also returns the
   * grants of all sessions in the worktree.
   */
  grants(scope: GrantFilter): Promise<Grant[]>
  /**
   * Leases the session to `holder`, unless another holder that is alive has the lease. In SQLite and memory, a holder
   * is alive while its process runs. In PostgreSQL, it is alive until its lease expires. A new lease ends the earlier
   * one, even if it has the same holder. Atomic across processes. Throws {@link StoreError} if the session does not
   * exist, and `TenantLimitError` if the tenant has already reached the limit.
   */
  lease(sessionID: string, holder: LeaseHolder, limit?: LeaseLimit): Promise<LeaseResult>
  /**
   * Leases sessions and claims their inputs in the transaction of `query`, which fails if one of the sessions changes
   * in the meantime. Skips sessions that belong to a tenant, have a holder, or have no inputs to claim. Call the result
   * after the transaction has committed. From then on, {@link lease} returns these leases to their holders. Absent in
   * stores that only one machine can use.
   */
  reserve?(reserving: Reserving, query: TransactionQuery): Promise<() => Reserved[]>
  /**
   * Ends the lease. Does nothing if it is no longer valid. With `passesOn`, a worker's lease in PostgreSQL instead
   * expires immediately, so that another worker continues the session.
   */
  release(lease: Lease, options?: { passesOn?: boolean }): Promise<void>
  /**
   * Recovers each session whose holder is no longer alive, unless another worker should continue it: applies the
   * changes from `settle` and ends the lease. If the changes cannot be applied, the lease is kept, and the next call
   * tries again. If a session has a damaged row, only ends its lease. Also deletes unanswered requests whose leases are
   * no longer valid. Returns the sessions with an unfinished undo or redo ({@link Session.restoring}), and keeps their
   * leases, so that every call returns them until they are finished.
   */
  recover(settle: (history: MessageWithParts[]) => readonly Change[]): Promise<Session[]>
  /**
   * Returns the sessions of workers whose leases have expired, except sessions whose holders were asked to stop. With
   * `sessionID`, checks only this session. Absent in stores that only one machine can use.
   */
  abandoned?(sessionID?: string): Promise<AbandonedSession[]>
  /** Returns the holder of the session's lease, or undefined if the session has no holder that is alive. */
  holder(sessionID: string): Promise<LeaseHolder | undefined>
  /** Records a model request's usage. The tenant's records from before the previous day may be removed. */
  addUsage(usage: UsageRecord): Promise<void>
  /** Returns a tenant's current usage, with its tokens and cost on the given day. */
  tenantUsage(tenant: string, day: number): Promise<TenantUsage>
  /** Returns the store of file contents in the same database. Absent if the contents are stored elsewhere. */
  contents?(limits: ContentLimits): ContentStore
  /**
   * Asks the holder of the session's lease to stop. Returns the lease, or undefined if the session has no holder that
   * is alive. Later leases of the session are not affected.
   */
  stop(sessionID: string): Promise<Lease | undefined>
  /** Returns true if the lease is still valid and its holder was asked to stop. */
  isStopping(lease: Lease): Promise<boolean>
  /** Stores a request that waits for the user. Throws {@link LeaseLostError} if the lease is no longer valid. */
  openRequest(request: StoredRequest, lease: Lease): Promise<void>
  /** Returns the unanswered requests whose lease is still valid and whose holder is alive, oldest first. */
  requests(): Promise<StoredRequest[]>
  /** Returns a request, whether or not it is answered, or undefined if it is not stored. */
  request(id: string): Promise<StoredRequest | undefined>
  /**
   * Stores an answer, unless the request already has one. Returns the request with its first answer, or undefined if
   * the request is not stored, or if it was not answered while its lease was valid. Atomic across processes.
   */
  answerRequest(id: string, answer: RequestAnswer): Promise<StoredRequest | undefined>
  /** Short messages between the engines that use the store. Absent in stores that only one machine can use. */
  mail?: Mail
  /**
   * Returns the space of deleted data to the file system. The duration depends on the amount of data. Does nothing in
   * PostgreSQL, which reuses the space.
   */
  reclaim(): Promise<void>
  /** Closes the store. Later calls throw. */
  close(): Promise<void>
}

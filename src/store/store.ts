import type { Message, MessageWithParts } from "../schema/message.ts"
import type { Part } from "../schema/part.ts"
import type { Grant } from "../schema/permission.ts"
import type { Session } from "../schema/session.ts"
import type { Todo } from "../schema/todo.ts"
import { TackleError } from "../util/errors.ts"
import type { ProcessIdentity } from "../util/process-table.ts"

/** One thing to write. Sessions, messages, parts and grants are written whole, by id, and replace the old value. */
export type Change =
  | { kind: "session"; session: Session }
  | { kind: "message"; message: Message }
  | { kind: "part"; part: Part }
  | { kind: "part.remove"; sessionID: string; messageID: string; partID: string }
  | { kind: "todos"; sessionID: string; todos: readonly Todo[] }
  | { kind: "grant"; grant: Grant }
  | { kind: "grant.remove"; grantID: string }

/** Selects sessions. Default: all. */
export interface SessionFilter {
  /** Only sessions of this worktree. */
  worktree?: string
  /** Only children of this session; `null`: only sessions without a parent. */
  parentID?: string | null
  /** Newest by `time.updated` first; default 100. */
  limit?: number
}

/** Durability of a commit. */
export interface CommitOptions {
  /** True: the commit is on the disk when it resolves. Takes 0.1 to 10 ms, depending on the disk. Default: false. */
  durable?: boolean
}

/** Selects messages of a session. Default: all. They are always returned in the order of ids. */
export interface MessagePage {
  /** Only messages with a greater id. */
  after?: string
  /** Only messages with a smaller id. */
  before?: string
  /** The maximum number, counted from the end that `from` names. */
  limit?: number
  /** Default: `newest`. */
  from?: "newest" | "oldest"
}

/** The engine that works on a session, and the process it lives in. */
export interface LeaseHolder extends ProcessIdentity {
  id: string
}

/** The database could not be opened, read or written. The message names the file and the next step. */
export class StoreError extends TackleError {
  constructor(message: string, cause?: unknown) {
    super(message, { code: "store", recoverable: false, cause })
  }
}

/**
 * Stores sessions and grants. Every implementation passes `test/suites/store.ts`: a resolved `commit` survives the end of
 * the process; a durable one, and all before it, survives a power loss; a rejected one changes nothing; reads see every
 * earlier commit; returned values are copies.
 */
export interface Store {
  /** Applies all changes in order, or none. Throws {@link StoreError}. */
  commit(changes: readonly Change[], options?: CommitOptions): Promise<void>
  session(id: string): Promise<Session | undefined>
  sessions(filter?: SessionFilter): Promise<Session[]>
  /** Removes a session with its messages, parts, todos, grants and child sessions. False if it does not exist. */
  deleteSession(id: string): Promise<boolean>
  /** Returns messages and their parts, both in the order of ids. The cost depends only on the page. */
  messages(sessionID: string, page?: MessagePage): Promise<MessageWithParts[]>
  todos(sessionID: string): Promise<Todo[]>
  /** Returns the project grants of the worktree and the grants of the session, oldest first. */
  grants(scope: { worktree?: string; sessionID?: string }): Promise<Grant[]>
  /**
   * Leases the session to `holder`, unless another holder has it for which `lives` is true. Returns the holder after the
   * call. Atomic across processes. Throws {@link StoreError} if the session does not exist.
   */
  lease(sessionID: string, holder: LeaseHolder, lives: (holder: LeaseHolder) => boolean): Promise<LeaseHolder>
  /** Ends the lease if this holder has it. */
  release(sessionID: string, holder: LeaseHolder): Promise<void>
  /** For each session whose holder no longer lives: writes the changes from `settle` and ends the lease, in one transaction. */
  recover(
    lives: (holder: LeaseHolder) => boolean,
    settle: (history: MessageWithParts[]) => readonly Change[],
  ): Promise<void>
  /** Returns the holder of the session, alive or not. */
  holder(sessionID: string): Promise<LeaseHolder | undefined>
  /** Returns the space of removed data to the file system. Takes time with the amount. */
  reclaim(): Promise<void>
  /** Closes the store. Later calls throw. */
  close(): Promise<void>
}

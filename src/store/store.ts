import type { Message, MessageWithParts } from "../schema/message.ts"
import type { Part } from "../schema/part.ts"
import type { Grant } from "../schema/permission.ts"
import type { Session } from "../schema/session.ts"
import type { Todo } from "../schema/todo.ts"
import type { ProcessIdentity } from "../util/process-table.ts"

/** One thing to write. Sessions, messages, parts and grants are put whole, by id: written anew or over the old. */
export type Change =
  | { kind: "session"; session: Session }
  | { kind: "message"; message: Message }
  | { kind: "part"; part: Part }
  | { kind: "part.remove"; sessionID: string; messageID: string; partID: string }
  | { kind: "todos"; sessionID: string; todos: readonly Todo[] }
  | { kind: "grant"; grant: Grant }
  | { kind: "grant.remove"; grantID: string }

/** Which sessions. Without more: all. */
export interface SessionFilter {
  /** Only sessions of this worktree. */
  worktree?: string
  /** Only children of this session; `null`: only sessions without a parent. */
  parentID?: string | null
  /** Newest by `time.updated` first; default 100. */
  limit?: number
}

/** How much a commit has to survive. */
export interface CommitOptions {
  /** On the disk when it resolves, which costs what the disk takes: 0.1 to 10 ms. Default: false. */
  durable?: boolean
}

/** Which messages of a session. Without more: all. They come in the order of ids, whichever are chosen. */
export interface MessagePage {
  /** Only messages with a greater id. */
  after?: string
  /** Only messages with a smaller id. */
  before?: string
  /** At most so many of those, from the end that `from` names. */
  limit?: number
  /** Default: `newest`. */
  from?: "newest" | "oldest"
}

/** The engine that works on a session, and the process it lives in. */
export interface LeaseHolder extends ProcessIdentity {
  id: string
}

/**
 * Where everything is kept. The contract that every implementation passes (`test/suites/store.ts`):
 * a resolved `commit` survives the death of the process, a durable one also that of the machine, with all before it; a
 * rejected one has changed nothing; reads see every commit before them; what is returned is the caller's own copy.
 */
export interface Store {
  /** All changes or none, in order. Throws `StoreError`. */
  commit(changes: readonly Change[], options?: CommitOptions): Promise<void>
  session(id: string): Promise<Session | undefined>
  sessions(filter?: SessionFilter): Promise<Session[]>
  /** Removes a session with its messages, parts, todos, grants and child sessions. False: there was none. */
  deleteSession(id: string): Promise<boolean>
  /** In the order of ids, each with its parts in the order of theirs. Costs no more than the page is long. */
  messages(sessionID: string, page?: MessagePage): Promise<MessageWithParts[]>
  todos(sessionID: string): Promise<Todo[]>
  /** Grants of the worktree with scope `project`, and those of the session, oldest first. */
  grants(scope: { worktree?: string; sessionID?: string }): Promise<Grant[]>
  /**
   * Gives the session to `holder`, unless it is somebody else's who `lives`; returns whose it is then. Of two who ask at
   * once one gets it. Throws `StoreError` where there is no such session.
   */
  lease(sessionID: string, holder: LeaseHolder, lives: (holder: LeaseHolder) => boolean): Promise<LeaseHolder>
  /** Takes back what `lease` gave to this holder. */
  release(sessionID: string, holder: LeaseHolder): Promise<void>
  /**
   * Settles every session whose holder does not live any more and lets go of it: what `settle` makes of its messages is
   * written and the lease taken back in one step, so that nobody sees the one without the other.
   */
  recover(
    lives: (holder: LeaseHolder) => boolean,
    settle: (history: MessageWithParts[]) => readonly Change[],
  ): Promise<void>
  /** Whose the session is, dead or alive. */
  holder(sessionID: string): Promise<LeaseHolder | undefined>
  /** Gives the room of what was removed back to the file system. Takes as long as that is large. */
  reclaim(): Promise<void>
  /** Ends everything; a later call throws. */
  close(): Promise<void>
}

import type { DatabaseSync } from "node:sqlite"
import { type Change, sessionOf } from "./store.ts"

/** Applies changes to the tables, with prepared statements. */
export interface ChangeWriter {
  /** Applies changes and returns their sequence numbers (see `Store.commit`). Call it within a transaction. */
  apply(changes: readonly Change[]): number[]
  /** Deletes a session with its child sessions and all their data. Returns false if the session does not exist. */
  deleteSession(id: string): boolean
}

/** Creates a change writer. Throws if the tables do not have the newest version. */
export function createChangeWriter(database: DatabaseSync): ChangeWriter {
  const advance = database.prepare(
    `INSERT INTO sequences (session_id, seq) VALUES (?, ?)
     ON CONFLICT (session_id) DO UPDATE SET seq = seq + excluded.seq RETURNING seq`,
  )
  const put = {
    session: database.prepare(
      `INSERT INTO sessions (id, parent_id, worktree, updated, seq, data) VALUES (?, ?, ?, ?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET parent_id = excluded.parent_id, worktree = excluded.worktree,
         updated = excluded.updated, seq = excluded.seq, data = excluded.data`,
    ),
    message: database.prepare(
      `INSERT INTO messages (session_id, id, seq, data) VALUES (?, ?, ?, ?)
       ON CONFLICT (session_id, id) DO UPDATE SET seq = excluded.seq, data = excluded.data`,
    ),
    part: database.prepare(
      `INSERT INTO parts (session_id, message_id, id, seq, data) VALUES (?, ?, ?, ?, ?)
       ON CONFLICT (session_id, message_id, id) DO UPDATE SET seq = excluded.seq, data = excluded.data`,
    ),
    todos: database.prepare(
      `INSERT INTO todos (session_id, seq, data) VALUES (?, ?, ?)
       ON CONFLICT (session_id) DO UPDATE SET seq = excluded.seq, data = excluded.data`,
    ),
    input: database.prepare(
      `INSERT INTO inputs (session_id, id, seq, data) VALUES (?, ?, ?, ?)
       ON CONFLICT (session_id, id) DO UPDATE SET seq = excluded.seq, data = excluded.data`,
    ),
    removedPart: database.prepare(
      "INSERT INTO removed_parts (session_id, seq, message_id, part_id) VALUES (?, ?, ?, ?)",
    ),
    grant: database.prepare(
      `INSERT INTO grants (id, session_id, worktree, created, data) VALUES (?, ?, ?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET session_id = excluded.session_id, worktree = excluded.worktree,
         created = excluded.created, data = excluded.data`,
    ),
  }
  const remove = {
    session: database.prepare(
      `WITH RECURSIVE family (id) AS (
         SELECT id FROM sessions WHERE id = ?
         UNION SELECT sessions.id FROM sessions JOIN family ON sessions.parent_id = family.id)
       DELETE FROM sessions WHERE id IN family`,
    ),
    part: database.prepare("DELETE FROM parts WHERE session_id = ? AND message_id = ? AND id = ?"),
    grant: database.prepare("DELETE FROM grants WHERE id = ?"),
  }

  function write(change: Change, seq: number): void {
    switch (change.kind) {
      case "session": {
        const { id, parentID, worktree, time } = change.session
        put.session.run(id, parentID ?? null, worktree, time.updated, seq, JSON.stringify(change.session))
        return
      }
      case "message":
        put.message.run(change.message.sessionID, change.message.id, seq, JSON.stringify(change.message))
        return
      case "part": {
        const { id, sessionID, messageID } = change.part
        put.part.run(sessionID, messageID, id, seq, JSON.stringify(change.part))
        return
      }
      case "part.remove":
        remove.part.run(change.sessionID, change.messageID, change.partID)
        put.removedPart.run(change.sessionID, seq, change.messageID, change.partID)
        return
      case "todos":
        put.todos.run(change.sessionID, seq, JSON.stringify(change.todos))
        return
      case "input":
        put.input.run(change.input.sessionID, change.input.id, seq, JSON.stringify(change.input))
        return
      case "grant": {
        const { id, scope, sessionID, worktree, time } = change.grant
        const owner = scope === "session" ? (sessionID ?? null) : null
        put.grant.run(id, owner, worktree, time.created, JSON.stringify(change.grant))
        return
      }
      case "grant.remove":
        remove.grant.run(change.grantID)
        return
    }
  }

  return {
    apply(changes) {
      const counts = new Map<string, number>()
      for (const change of changes) {
        const id = sessionOf(change)
        if (id !== undefined) counts.set(id, (counts.get(id) ?? 0) + 1)
      }
      // Latest number of each session before these changes. The session itself may be one of the changes.
      const next = new Map<string, number>()
      for (const [id, count] of counts) next.set(id, Number(advance.get(id, count)?.seq) - count)
      return changes.map((change) => {
        const id = sessionOf(change)
        const seq = id === undefined ? 0 : (next.get(id) ?? 0) + 1
        if (id !== undefined) next.set(id, seq)
        write(change, seq)
        return seq
      })
    },
    deleteSession: (id) => Number(remove.session.run(id).changes) > 0,
  }
}

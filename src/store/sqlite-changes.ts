import type { DatabaseSync } from "node:sqlite"
import type { Change } from "./store.ts"

/** Applies changes to the tables, with prepared statements. */
export interface ChangeWriter {
  apply(change: Change): void
  /** Deletes a session with its child sessions and all their data. Returns false if the session does not exist. */
  deleteSession(id: string): boolean
}

/** Creates a change writer. Throws if the tables do not have the newest version. */
export function createChangeWriter(database: DatabaseSync): ChangeWriter {
  const put = {
    session: database.prepare(
      `INSERT INTO sessions (id, parent_id, worktree, updated, data) VALUES (?, ?, ?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET parent_id = excluded.parent_id, worktree = excluded.worktree,
         updated = excluded.updated, data = excluded.data`,
    ),
    message: database.prepare(
      `INSERT INTO messages (session_id, id, data) VALUES (?, ?, ?)
       ON CONFLICT (session_id, id) DO UPDATE SET data = excluded.data`,
    ),
    part: database.prepare(
      `INSERT INTO parts (session_id, message_id, id, data) VALUES (?, ?, ?, ?)
       ON CONFLICT (session_id, message_id, id) DO UPDATE SET data = excluded.data`,
    ),
    todos: database.prepare(
      "INSERT INTO todos (session_id, data) VALUES (?, ?) ON CONFLICT (session_id) DO UPDATE SET data = excluded.data",
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
  return {
    apply(change: Change): void {
      switch (change.kind) {
        case "session": {
          const { id, parentID, worktree, time } = change.session
          put.session.run(id, parentID ?? null, worktree, time.updated, JSON.stringify(change.session))
          return
        }
        case "message":
          put.message.run(change.message.sessionID, change.message.id, JSON.stringify(change.message))
          return
        case "part": {
          const { id, sessionID, messageID } = change.part
          put.part.run(sessionID, messageID, id, JSON.stringify(change.part))
          return
        }
        case "part.remove":
          remove.part.run(change.sessionID, change.messageID, change.partID)
          return
        case "todos":
          put.todos.run(change.sessionID, JSON.stringify(change.todos))
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
    },
    deleteSession: (id) => Number(remove.session.run(id).changes) > 0,
  }
}

import { closeSync, mkdirSync, openSync } from "node:fs"
import { dirname } from "node:path"
import { DatabaseSync } from "node:sqlite"
import type { Message, MessageWithParts } from "../schema/message.ts"
import type { Part } from "../schema/part.ts"
import type { Grant } from "../schema/permission.ts"
import type { Session } from "../schema/session.ts"
import type { Todo } from "../schema/todo.ts"
import { systemCode } from "../util/errors.ts"
import { StoreError } from "./errors.ts"
import { migrate, migrations, readVersion } from "./migrations.ts"
import { sqliteError, waitWhileBusy } from "./sqlite-errors.ts"
import type { Change, LeaseHolder, MessagePage, Store } from "./store.ts"

export interface SqliteStoreOptions {
  /** How long a write waits for another process to let go of the database, in milliseconds. Default 5000. */
  busyTimeoutMs?: number
}

/**
 * The default {@link Store}: one SQLite file in WAL mode, shared by any number of processes. A missing file, also its
 * directory, is made, readable by its owner alone. Throws {@link StoreError}, and leaves the file as it is, when it is
 * no database, damaged, another program's, or written by a newer Tackle.
 *
 * What was committed survives the death of the process at any instant. A loss of power may take the commits after the
 * last durable one with it, the newest first, never the file.
 */
export async function openSqliteStore(path: string, options: SqliteStoreOptions = {}): Promise<Store> {
  const busyMs = options.busyTimeoutMs ?? 5000
  createFile(path)
  const database = guarded(
    path,
    () => new DatabaseSync(path, { timeout: busyMs, enableForeignKeyConstraints: true }),
  )
  try {
    return guarded(path, () => {
      prepareDatabase(path, database, busyMs)
      return createStore(path, database, busyMs)
    })
  } catch (error) {
    database.close()
    throw error
  }
}

function createFile(path: string): void {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    closeSync(openSync(path, "a", 0o600))
  } catch (error) {
    throw new StoreError(
      `The database ${path} cannot be written (${systemCode(error) ?? "unknown reason"}). ` +
        "Check the rights of its directory, or set TACKLE_DATA_DIR to one that you can write.",
      error,
    )
  }
}

/** Nothing is written before the version was understood. */
function prepareDatabase(path: string, database: DatabaseSync, busyMs: number): void {
  const { version, kind } = waitWhileBusy(busyMs, () => readVersion(database))
  if (kind === "foreign") {
    throw new StoreError(`${path} is the database of another program. Move it away, or choose another path.`)
  }
  if (version > migrations.length) {
    throw new StoreError(
      `The database ${path} has version ${version}; this Tackle knows up to version ${migrations.length}. ` +
        "Update Tackle, or set TACKLE_DATA_DIR to another directory. Nothing was changed.",
    )
  }
  database.exec(synchronous.normal)
  // Only before the first table. Others get it when room is first given back.
  if (kind === "empty") database.exec("PRAGMA auto_vacuum = INCREMENTAL")
  waitWhileBusy(busyMs, () => database.exec("PRAGMA journal_mode = WAL"))
  if (version < migrations.length) waitWhileBusy(busyMs, () => migrate(database))
}

/** In WAL mode `FULL` syncs the log after a commit, `NORMAL` before a checkpoint only. Ignored within a transaction. */
const synchronous = { normal: "PRAGMA synchronous = NORMAL", full: "PRAGMA synchronous = FULL" }

function createStore(path: string, database: DatabaseSync, busyMs: number): Store {
  const transaction = { begin: database.prepare("BEGIN IMMEDIATE"), commit: database.prepare("COMMIT") }
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
  const leases = {
    select: database.prepare("SELECT data FROM leases WHERE session_id = ?"),
    put: database.prepare(
      "INSERT INTO leases (session_id, data) VALUES (?, ?) ON CONFLICT (session_id) DO UPDATE SET data = excluded.data",
    ),
    all: database.prepare("SELECT session_id, data FROM leases"),
    remove: database.prepare("DELETE FROM leases WHERE session_id = ? AND data ->> 'id' = ?"),
  }
  const select = {
    session: database.prepare("SELECT data FROM sessions WHERE id = ?"),
    newest: database.prepare(
      "SELECT id, data FROM messages WHERE session_id = ? AND id > ? AND id < ? ORDER BY id DESC LIMIT ?",
    ),
    oldest: database.prepare(
      "SELECT id, data FROM messages WHERE session_id = ? AND id > ? AND id < ? ORDER BY id LIMIT ?",
    ),
    parts: database.prepare(
      `SELECT message_id, data FROM parts WHERE session_id = ? AND message_id BETWEEN ? AND ?
       ORDER BY message_id, id`,
    ),
    todos: database.prepare("SELECT data FROM todos WHERE session_id = ?"),
    grants: database.prepare(
      "SELECT data FROM grants WHERE session_id = ? OR (worktree = ? AND session_id IS NULL) ORDER BY created, id",
    ),
  }

  function apply(change: Change): void {
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
  }

  function holderOf(sessionID: string): LeaseHolder | undefined {
    const row = leases.select.get(sessionID)
    return row && parse<LeaseHolder>(row.data)
  }

  function messagesOf(
    sessionID: string,
    { after = "", before = afterAllText, limit = -1, from = "newest" }: MessagePage = {},
  ): MessageWithParts[] {
    const rows = select[from].all(sessionID, after, before, limit)
    if (from === "newest") rows.reverse()
    const byID = new Map<unknown, MessageWithParts>()
    for (const { id, data } of rows) byID.set(id, { message: parse<Message>(data), parts: [] })
    const [oldest, newest] = [rows.at(0)?.id, rows.at(-1)?.id]
    if (oldest === undefined || newest === undefined) return []
    for (const row of select.parts.all(sessionID, oldest, newest)) {
      byID.get(row.message_id)?.parts.push(parse<Part>(row.data))
    }
    return [...byID.values()]
  }

  function transact<T>(work: () => T): T {
    transaction.begin.run()
    try {
      const result = work()
      transaction.commit.run()
      return result
    } catch (error) {
      // SQLite has already rolled back after some errors, such as a full disk.
      if (database.isTransaction) database.exec("ROLLBACK")
      throw error
    }
  }

  /** Runs work whose commit is on the disk when it returns. */
  function durably(work: () => void): void {
    database.exec(synchronous.full)
    try {
      work()
    } finally {
      database.exec(synchronous.normal)
    }
  }

  function run<T>(work: () => T): T {
    if (!database.isOpen) throw new StoreError(`The store of ${path} is closed.`)
    return guarded(path, () => waitWhileBusy(busyMs, work))
  }

  return {
    async commit(changes, { durable = false } = {}) {
      const [first, ...more] = changes
      if (first === undefined) return run(() => {})
      // One statement is a transaction by itself.
      const write = () => (more.length === 0 ? apply(first) : transact(() => changes.forEach(apply)))
      run(() => (durable ? durably(write) : write()))
    },
    async session(id) {
      return run(() => {
        const row = select.session.get(id)
        return row && parse<Session>(row.data)
      })
    },
    async sessions(filter = {}) {
      const { worktree, parentID, limit = 100 } = filter
      const conditions: string[] = []
      const values: (string | number)[] = []
      if (worktree !== undefined) {
        conditions.push("worktree = ?")
        values.push(worktree)
      }
      if (parentID === null) conditions.push("parent_id IS NULL")
      else if (parentID !== undefined) {
        conditions.push("parent_id = ?")
        values.push(parentID)
      }
      const where = conditions.length > 0 ? `WHERE ${conditions.join(" AND ")}` : ""
      const query = `SELECT data FROM sessions ${where} ORDER BY updated DESC, id DESC LIMIT ?`
      return run(() =>
        database
          .prepare(query)
          .all(...values, limit)
          .map((row) => parse<Session>(row.data)),
      )
    },
    async deleteSession(id) {
      return run(() => Number(remove.session.run(id).changes) > 0)
    },
    async messages(sessionID, page = {}) {
      return run(() => messagesOf(sessionID, page))
    },
    async todos(sessionID) {
      return run(() => {
        const row = select.todos.get(sessionID)
        return row ? parse<Todo[]>(row.data) : []
      })
    },
    async grants(scope) {
      return run(() =>
        select.grants
          .all(scope.sessionID ?? null, scope.worktree ?? null)
          .map((row) => parse<Grant>(row.data)),
      )
    },
    async lease(sessionID, holder, lives) {
      return run(() =>
        transact(() => {
          const present = holderOf(sessionID)
          if (present && present.id !== holder.id && lives(present)) return present
          leases.put.run(sessionID, JSON.stringify(holder))
          return holder
        }),
      )
    },
    async release(sessionID, holder) {
      run(() => leases.remove.run(sessionID, holder.id))
    },
    async recover(lives, settle) {
      for (const row of run(() => leases.all.all())) {
        const [sessionID, present] = [String(row.session_id), parse<LeaseHolder>(row.data)]
        if (lives(present)) continue
        run(() =>
          transact(() => {
            // Another process may have been here first, or work on the session by now.
            if (holderOf(sessionID)?.id !== present.id) return
            settle(messagesOf(sessionID)).forEach(apply)
            leases.remove.run(sessionID, present.id)
          }),
        )
      }
    },
    async holder(sessionID) {
      return run(() => holderOf(sessionID))
    },
    async reclaim() {
      run(() => {
        const incremental = database.prepare("PRAGMA auto_vacuum").get()?.auto_vacuum === 2
        database.exec(incremental ? "PRAGMA incremental_vacuum" : "PRAGMA auto_vacuum = INCREMENTAL; VACUUM")
        // What was only written to the log does not make the file shorter.
        database.exec("PRAGMA wal_checkpoint(TRUNCATE)")
      })
    },
    async close() {
      if (database.isOpen) run(() => database.close())
    },
  }
}

/** The greatest character there is: all ids come before it. */
const afterAllText = "\u{10ffff}"

/** Our own JSON, written from a value of this type: it is not validated again. */
function parse<T>(data: unknown): T {
  return JSON.parse(String(data)) as T
}

function guarded<T>(path: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw sqliteError(path, error)
  }
}

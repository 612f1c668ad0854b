import type { DatabaseSync } from "node:sqlite"
import { setTimeout } from "node:timers/promises"
import type { Message } from "../schema/message.ts"
import type { Part } from "../schema/part.ts"
import { queryWords, searchedText, wordsOf } from "./search.ts"
import type { SqliteConnection } from "./sqlite-connection.ts"
import type { SqliteReader } from "./sqlite-reader.ts"
import type { ListedRow, SearchHit, SessionFilter } from "./store.ts"

/** Full-text index for a database. */
export interface SearchIndex {
  /** See `Store.search`. */
  search(query: string, filter?: SessionFilter): Promise<SearchHit[]>
  /** Removes the words of deleted sessions from the index. The duration depends on the index size. */
  compact(): void
}

/**
 * The index tables. The first search creates them. All their data can be derived from the other tables. `search_texts`
 * has one row for each title (with empty ids) and each part. `search_words` contains the words of these rows.
 * `search_progress` contains the number of each session's latest indexed change. Deleting a session deletes its rows.
 */
const tables = `
  CREATE TABLE IF NOT EXISTS search_texts (
    id INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    message_id TEXT NOT NULL,
    part_id TEXT NOT NULL,
    UNIQUE (session_id, message_id, part_id)
  ) STRICT;
  CREATE TABLE IF NOT EXISTS search_progress (
    session_id TEXT PRIMARY KEY REFERENCES sessions (id) ON DELETE CASCADE,
    seq INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE VIRTUAL TABLE IF NOT EXISTS search_words
    USING fts5 (words, content = '', contentless_delete = 1, tokenize = 'ascii', detail = none);
  CREATE TRIGGER IF NOT EXISTS search_texts_deleted AFTER DELETE ON search_texts BEGIN
    DELETE FROM search_words WHERE rowid = OLD.id;
  END;
`

/**
 * Time in milliseconds after which a transaction ends. The first search of a large database takes minutes, and other
 * writers, including other processes, must not wait for it.
 */
const batchMs = 50

/**
 * Pause in milliseconds between two transactions, in which other writers can lock the database. SQLite checks a lock
 * that it waits for at intervals of up to 100 ms.
 */
const pauseMs = 50

/**
 * Creates the full-text index for a database. A search first indexes the rows that changed since the previous search,
 * so that writes need no extra work.
 */
export function createSearchIndex(
  { run, change, transact }: SqliteConnection,
  database: DatabaseSync,
  reader: SqliteReader,
): SearchIndex {
  let statements: ReturnType<typeof prepare> | undefined

  function open(): ReturnType<typeof prepare> {
    statements ??= change(() => {
      transact(() => database.exec(tables))
      return prepare(database)
    })
    return statements
  }

  /** Indexes one session's changes. Call it within a transaction. */
  function fill(sessionID: string): void {
    const { progress, setProgress, title, parts, removed, remove, put, words } = open()
    const seq = reader.sequence(sessionID)
    // The session was deleted in the meantime.
    if (seq === 0) return
    /** Number of the latest indexed change, or -1 if none is indexed. */
    const after = Number(progress.get(sessionID)?.seq ?? -1)
    const index = (messageID: string, partID: string, text: string) => {
      if (after >= 0) remove.run(sessionID, messageID, partID)
      const found = [...new Set(wordsOf(text))]
      if (found.length === 0) return
      words.run(put.run(sessionID, messageID, partID).lastInsertRowid, found.join(" "))
    }
    const session = title.get(sessionID, after)
    if (session) index("", "", String(session.title ?? ""))
    for (const row of removed.all(sessionID, after))
      remove.run(sessionID, String(row.message_id), String(row.part_id))
    for (const row of parts.all(sessionID, after))
      index(String(row.message_id), String(row.id), textOf(row.data))
    setProgress.run(sessionID, seq)
  }

  async function fillAll(): Promise<void> {
    const stale = run(() => open().stale.all()).map((row) => String(row.session_id))
    while (stale.length > 0) {
      change(() =>
        transact(() => {
          const end = performance.now() + batchMs
          do fill(stale.pop() ?? "")
          while (stale.length > 0 && performance.now() < end)
        }),
      )
      if (stale.length > 0) await setTimeout(pauseMs)
    }
  }

  return {
    async search(query, filter = {}) {
      const words = queryWords(query).map((word) => `"${word}"`)
      if (words.length === 0) return []
      words[words.length - 1] += "*"
      await fillAll()
      return run(() => {
        const found = reader.page(filter, {
          sql: words.map(() => matchingSessions).join(" INTERSECT "),
          values: words,
        })
        const { first } = open()
        const ids = JSON.stringify(found.map(({ session }) => session.id))
        const places = new Map<string, string>()
        // Prefers a text that contains all words over a text that contains only the first word.
        for (const match of [words[0] ?? "", words.join(" AND ")])
          for (const row of first.all(match, ids)) places.set(String(row.session_id), String(row.place))
        return found.map(({ session, cursor }) => ({
          session,
          cursor,
          ...placeOf(database, session.id, places.get(session.id) ?? ""),
          ...(places.get(session.id) === " " && { text: session.title }),
        }))
      })
    },
    compact() {
      const exists = database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'search_words'").get()
      if (exists) database.exec("INSERT INTO search_words (search_words) VALUES ('optimize')")
    },
  }
}

/** Selects the sessions that contain a word. */
const matchingSessions =
  "SELECT t.session_id FROM search_words w JOIN search_texts t ON t.id = w.rowid WHERE w.search_words MATCH ?"

function prepare(database: DatabaseSync) {
  return {
    stale: database.prepare(
      `SELECT s.session_id FROM sequences s LEFT JOIN search_progress p USING (session_id)
       WHERE p.seq IS NULL OR p.seq <> s.seq`,
    ),
    progress: database.prepare("SELECT seq FROM search_progress WHERE session_id = ?"),
    setProgress: database.prepare(
      `INSERT INTO search_progress (session_id, seq) VALUES (?, ?)
       ON CONFLICT (session_id) DO UPDATE SET seq = excluded.seq`,
    ),
    title: database.prepare(
      `SELECT CASE WHEN json_valid(data) THEN data ->> 'title' END AS title
       FROM sessions WHERE id = ? AND seq > ?`,
    ),
    parts: database.prepare("SELECT message_id, id, data FROM parts WHERE session_id = ? AND seq > ?"),
    removed: database.prepare(
      "SELECT message_id, part_id FROM removed_parts WHERE session_id = ? AND seq > ?",
    ),
    remove: database.prepare(
      "DELETE FROM search_texts WHERE session_id = ? AND message_id = ? AND part_id = ?",
    ),
    put: database.prepare("INSERT INTO search_texts (session_id, message_id, part_id) VALUES (?, ?, ?)"),
    words: database.prepare("INSERT INTO search_words (rowid, words) VALUES (?, ?)"),
    /** Selects the first matching text of each given session. */
    first: database.prepare(
      `SELECT t.session_id, min(t.message_id || ' ' || t.part_id) AS place
       FROM search_words w JOIN search_texts t ON t.id = w.rowid
       WHERE w.search_words MATCH ? AND t.session_id IN (SELECT value FROM json_each(?))
       GROUP BY t.session_id`,
    ),
  }
}

function textOf(data: unknown): string {
  try {
    return searchedText(JSON.parse(String(data)) as Part)
  } catch {
    // One damaged row must not prevent the search.
    return ""
  }
}

/** Returns a part's text, with its message. `place` contains the ids of the message and the part. */
function placeOf(database: DatabaseSync, sessionID: string, place: string): Omit<SearchHit, keyof ListedRow> {
  const [messageID = "", partID = ""] = place.split(" ")
  const row = database
    .prepare(
      `SELECT p.data, CASE WHEN json_valid(m.data) THEN m.data ->> 'role' END AS role FROM parts p
       JOIN messages m ON m.session_id = p.session_id AND m.id = p.message_id
       WHERE p.session_id = ? AND p.message_id = ? AND p.id = ?`,
    )
    .get(sessionID, messageID, partID)
  return row ? { messageID, role: row.role as Message["role"], text: textOf(row.data) } : { text: "" }
}

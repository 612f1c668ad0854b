import type { Message } from "../schema/message.ts"
import type { Part } from "../schema/part.ts"
import { parseJson } from "../util/json.ts"
import type { PostgresConnection } from "./postgres-connection.ts"
import type { PostgresReader } from "./postgres-reader.ts"
import { queryWords, searchedText, wordsOf } from "./search.ts"
import type { Store } from "./store.ts"

/**
 * Creates the full-text search for a database. As in SQLite, a search first indexes the rows that changed since the
 * previous search, so that writes need no extra work. `search_texts` has one row per title (with empty ids) and part.
 */
export function createPostgresSearch(
  { query, transact, schema }: PostgresConnection,
  reader: PostgresReader,
): Store["search"] {
  /** Indexes one session's changes. */
  async function fill(sessionID: string): Promise<void> {
    await transact(async (run) => {
      // The row lock also excludes another process that indexes this session. The session may have been deleted in
      // the meantime.
      const [progress] = await run(
        `INSERT INTO ${schema}.search_progress (session_id, seq) SELECT id, -1 FROM ${schema}.sessions WHERE id = $1
         ON CONFLICT (session_id) DO UPDATE SET seq = search_progress.seq RETURNING seq`,
        [sessionID],
      )
      if (!progress) return
      const after = Number(progress.seq)
      const rows = await run(
        `SELECT s.seq, '' AS message_id, '' AS part_id, s.data, true AS is_title
           FROM ${schema}.sessions s WHERE s.id = $1 AND s.seq > $2
         UNION ALL SELECT r.seq, r.message_id, r.part_id, NULL, false
           FROM ${schema}.removed_parts r WHERE r.session_id = $1 AND r.seq > $2
         UNION ALL SELECT p.seq, p.message_id, p.id, p.data, false
           FROM ${schema}.parts p WHERE p.session_id = $1 AND p.seq > $2
         UNION ALL SELECT q.seq, NULL, NULL, NULL, false FROM ${schema}.sequences q WHERE q.session_id = $1
         ORDER BY seq`,
        [sessionID, after],
      )
      for (const { message_id, part_id, data, is_title } of rows) {
        if (message_id === null) continue
        if (after >= 0)
          await run(
            `DELETE FROM ${schema}.search_texts WHERE session_id = $1 AND message_id = $2 AND part_id = $3`,
            [sessionID, message_id, part_id],
          )
        const words = data === null ? [] : [...new Set(wordsOf(is_title ? titleOf(data) : textOf(data)))]
        if (words.length === 0) continue
        await run(
          `INSERT INTO ${schema}.search_texts VALUES ($1, $2, $3, array_to_tsvector($4::text[]))
           ON CONFLICT (session_id, message_id, part_id) DO UPDATE SET words = excluded.words`,
          [sessionID, message_id, part_id, words],
        )
      }
      // Stores the number of the last of these changes. The next search indexes later changes.
      const seq = Math.max(...rows.map((row) => Number(row.seq)))
      await run(`UPDATE ${schema}.search_progress SET seq = $2 WHERE session_id = $1`, [sessionID, seq])
    })
  }

  async function fillAll(): Promise<void> {
    const stale = await query(
      `SELECT s.session_id FROM ${schema}.sequences s LEFT JOIN ${schema}.search_progress p USING (session_id)
       WHERE p.seq IS NULL OR p.seq <> s.seq`,
    )
    for (const { session_id } of stale) await fill(String(session_id))
  }

  /** Returns each matching session's id, with the ids of the message and part that contain its first matching text. */
  async function firstTexts(match: string, ids: readonly string[]): Promise<[string, string][]> {
    const rows = await query(
      `SELECT session_id, min(message_id || ' ' || part_id) AS place FROM ${schema}.search_texts
       WHERE words @@ $1::tsquery AND session_id = ANY ($2::text[]) GROUP BY session_id`,
      [match, ids],
    )
    return rows.map((row) => [String(row.session_id), String(row.place)])
  }

  return async (text, filter = {}) => {
    // Words contain no quotes or backslashes, so they need no escaping.
    const words = queryWords(text).map((word) => `'${word}'`)
    if (words.length === 0) return []
    words[words.length - 1] += ":*"
    await fillAll()
    const matching = words.map(
      (_, index) => `SELECT session_id FROM ${schema}.search_texts WHERE words @@ $${index + 10}::tsquery`,
    )
    const found = await reader.page(filter, { sql: matching.join(" INTERSECT "), values: words })
    const ids = found.map(({ session }) => session.id)
    // Prefers a text that contains all words over a text that contains only the first word.
    const places = new Map([
      ...(await firstTexts(words[0] ?? "", ids)),
      ...(await firstTexts(words.join(" & "), ids)),
    ])
    const parts = [...places].flatMap(([id, place]) => (place === " " ? [] : [[id, ...place.split(" ")]]))
    const rows = await query(
      `SELECT p.session_id, m.id AS message_id, m.data AS message, p.data FROM ${schema}.parts p
       JOIN ${schema}.messages m ON m.session_id = p.session_id AND m.id = p.message_id
       JOIN unnest($1::text[], $2::text[], $3::text[]) AS place (session_id, message_id, id)
         ON place.session_id = p.session_id AND place.message_id = p.message_id AND place.id = p.id`,
      [0, 1, 2].map((index) => parts.map((part) => part[index])),
    )
    const texts = new Map(rows.map((row) => [row.session_id, row]))
    return found.map((listed) => {
      const { session } = listed
      if (places.get(session.id) === " ") return { ...listed, text: session.title }
      const row = texts.get(session.id)
      if (!row) return { ...listed, text: "" }
      return { ...listed, messageID: row.message_id, role: roleOf(row.message), text: textOf(row.data) }
    })
  }
}

function roleOf(data: unknown): Message["role"] | undefined {
  const parsed = parseJson(String(data))
  return parsed.ok ? (parsed.value as Message).role : undefined
}

function titleOf(data: unknown): string {
  const parsed = parseJson(String(data))
  return parsed.ok ? String((parsed.value as { title?: unknown }).title ?? "") : ""
}

/** Returns a part's searched text, or an empty string for a damaged row, which must not prevent the search. */
function textOf(data: unknown): string {
  try {
    return searchedText(JSON.parse(String(data)) as Part)
  } catch {
    return ""
  }
}

import type { DatabaseSync } from "node:sqlite"
import { type RequestAnswer, type StoredRequest, withAnswer } from "../schema/request.ts"
import { currentTime } from "../util/time.ts"
import { parse } from "./rows.ts"

/** Reads and writes the request table, with prepared statements. See the methods of `Store`. */
export interface RequestTable {
  open(request: StoredRequest): void
  list(): StoredRequest[]
  get(id: string): StoredRequest | undefined
  answer(id: string, answer: RequestAnswer): StoredRequest | undefined
  /** Returns true if the lease of at least one unanswered request is no longer valid. */
  hasStale(): boolean
  /** Deletes the unanswered requests whose leases are no longer valid. */
  removeStale(): void
}

/** Prepares the statements. `isLeased` returns true while a request's lease is valid. */
export function createRequestTable(
  database: DatabaseSync,
  isLeased: (request: StoredRequest) => boolean,
): RequestTable {
  const statements = {
    put: database.prepare(
      `INSERT INTO requests (id, session_id, data) VALUES (?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET data = excluded.data`,
    ),
    get: database.prepare("SELECT data FROM requests WHERE id = ?"),
    open: database.prepare(
      "SELECT data FROM requests WHERE data ->> 'answer' IS NULL ORDER BY substr(id, 4)",
    ),
    remove: database.prepare("DELETE FROM requests WHERE id = ?"),
  }

  function put(request: StoredRequest): void {
    const { id, sessionID } = request.asked
    statements.put.run(id, sessionID, JSON.stringify(request))
  }

  function get(id: string): StoredRequest | undefined {
    const row = statements.get.get(id)
    return row && parse<StoredRequest>(row.data)
  }

  const open = () => statements.open.all().map((row) => parse<StoredRequest>(row.data))
  const stale = () => open().filter((request) => !isLeased(request))

  return {
    open: put,
    list: () => open().filter(isLeased),
    get,
    answer(id, answer) {
      const request = get(id)
      if (!request || request.answer) return request
      if (!isLeased(request)) return undefined
      const answered = withAnswer(request, answer, currentTime())
      put(answered)
      return answered
    },
    hasStale: () => stale().length > 0,
    removeStale() {
      for (const { asked } of stale()) statements.remove.run(asked.id)
    },
  }
}

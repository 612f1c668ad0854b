import type { DatabaseSync } from "node:sqlite"
import type { LeaseHolder } from "./store.ts"

/** Who works on which session, by statements that are prepared once. */
export interface LeaseTable {
  holder(sessionID: string): LeaseHolder | undefined
  all(): { sessionID: string; holder: LeaseHolder }[]
  put(sessionID: string, holder: LeaseHolder): void
  /** Where it is that holder's. */
  remove(sessionID: string, holder: LeaseHolder): void
}

/** Throws where the tables are not those of the newest version. */
export function createLeaseTable(database: DatabaseSync): LeaseTable {
  const statements = {
    select: database.prepare("SELECT data FROM leases WHERE session_id = ?"),
    put: database.prepare(
      "INSERT INTO leases (session_id, data) VALUES (?, ?) ON CONFLICT (session_id) DO UPDATE SET data = excluded.data",
    ),
    all: database.prepare("SELECT session_id, data FROM leases"),
    remove: database.prepare("DELETE FROM leases WHERE session_id = ? AND data ->> 'id' = ?"),
  }
  return {
    holder(sessionID) {
      const row = statements.select.get(sessionID)
      return row && read(row.data)
    },
    all: () =>
      statements.all.all().map((row) => ({ sessionID: String(row.session_id), holder: read(row.data) })),
    put(sessionID, holder) {
      statements.put.run(sessionID, JSON.stringify(holder))
    },
    remove(sessionID, { id }) {
      statements.remove.run(sessionID, id)
    },
  }
}

function read(data: unknown): LeaseHolder {
  return JSON.parse(String(data)) as LeaseHolder
}

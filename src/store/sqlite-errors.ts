import { errorMessage } from "../util/errors.ts"
import { StoreError } from "./errors.ts"

/** SQLite's primary result codes, with what they mean for a person and the next move. */
const meanings: Record<number, string> = {
  1: "lacks what it should hold. Move it away (keep it: parts may be recoverable) and start again.",
  3: "may not be read or written. Check the rights of the file and its directory.",
  5: "is locked by another process. Wait for it or end it, then try again.",
  6: "is locked by another process. Wait for it or end it, then try again.",
  8: "cannot be written. Check the rights of the file and its directory, or set TACKLE_DATA_DIR to another one.",
  10: "could not be read or written: the disk reports an error, or is full. Check it, then try again.",
  11: "is damaged. Move it away (keep it: parts may be recoverable) and start again; a new one will be made.",
  13: "could not be written: the disk is full. Free some space, then try again.",
  14: "cannot be opened. Check the rights of its directory, or set TACKLE_DATA_DIR to another one.",
  19: "refused a change: it belongs to a session or message that is not stored.",
  26: "is no database. Move it away and start again; a new one will be made.",
}

const busy = 5

/** The error of an operation on the database `path`, as a {@link StoreError}; one of these stays as it is. */
export function sqliteError(path: string, error: unknown): StoreError {
  if (error instanceof StoreError) return error
  const code = primaryCode(error)
  if (code === undefined) return new StoreError(`The store refused a change: ${errorMessage(error)}`, error)
  const meaning = meanings[code] ?? "could not be used. If this happens again, move it away."
  return new StoreError(`The database ${path} ${meaning} (${errorMessage(error)})`, error)
}

/**
 * Runs `work`, again for up to `ms` milliseconds while it fails with SQLITE_BUSY. SQLite itself waits for an ordinary
 * lock, but answers busy at once in some states: another process recovers the log, or changes the journal mode. The
 * wait is synchronous, so that a later commit cannot overtake this one.
 */
export function waitWhileBusy<T>(ms: number, work: () => T): T {
  const deadline = Date.now() + ms
  for (;;) {
    try {
      return work()
    } catch (error) {
      if (primaryCode(error) !== busy || Date.now() >= deadline) throw error
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10)
    }
  }
}

function primaryCode(error: unknown): number | undefined {
  if (typeof error !== "object" || error === null || !("errcode" in error)) return undefined
  // The lower byte: the rest is the extended code.
  return typeof error.errcode === "number" ? error.errcode & 0xff : undefined
}

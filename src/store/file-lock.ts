import { DatabaseSync } from "node:sqlite"
import { errorMessage, TackleError } from "../util/errors.ts"

/** Whoever holds the lock reads and writes one small file. Longer than that takes on a slow disk, in milliseconds. */
const patienceMs = 10_000

/**
 * Runs `work` alone among all processes that lock the same path, and blocks until it is its turn. The lock is one of the
 * system's, on a file beside (`<path>.lock`), so it ends with a process that is killed. Throws what `work` throws, and
 * `TackleError` with the code where the lock cannot be had.
 */
export function withFileLock<T>(path: string, code: string, work: () => T): T {
  let lock: DatabaseSync | undefined
  try {
    lock = new DatabaseSync(`${path}.lock`, { timeout: patienceMs })
    // Nothing is ever written into it: SQLite's own lock on the file is what counts.
    lock.exec("BEGIN IMMEDIATE")
  } catch (error) {
    lock?.close()
    throw new TackleError(
      `${path}.lock cannot be locked (${errorMessage(error)}). Check the rights of its directory, and whether another process hangs.`,
      { code, recoverable: false, cause: error },
    )
  }
  try {
    return work()
  } finally {
    lock.close()
  }
}

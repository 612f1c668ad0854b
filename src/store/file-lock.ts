import { createHash } from "node:crypto"
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import type { DatabaseSync } from "node:sqlite"
import { setTimeout as delay } from "node:timers/promises"
import { errorMessage, TackleError } from "../util/errors.ts"

/**
 * SQLite is not imported statically, so that a version of Node without SQLite can load this module and report that the
 * version is too old.
 */
const sqlite = process.getBuiltinModule("node:sqlite")

/** Maximum wait for a file lock, in milliseconds. Locks are held only while one small file is read and written. */
const fileTimeoutMs = 10_000

/**
 * Runs `work` while holding an exclusive lock for the path. Blocks for up to 10 seconds until the lock is free. The
 * lock is a system lock on `<path>.lock`, so it is released when the process ends. Throws the errors of `work`, and
 * `TackleError` with the given code if the lock cannot be acquired.
 */
export function withFileLock<T>(path: string, code: string, work: () => T): T {
  let lock: DatabaseSync | undefined
  try {
    lock = new sqlite.DatabaseSync(`${path}.lock`, { timeout: fileTimeoutMs })
    // The transaction writes nothing. It only acquires SQLite's lock on the file.
    lock.exec("BEGIN IMMEDIATE")
  } catch (error) {
    lock?.close()
    throw new TackleError(
      `${path}.lock cannot be locked (${errorMessage(error)}). Check the permissions of its directory, and check whether a stuck process is holding the lock.`,
      { code, recoverable: false, cause: error },
    )
  }
  try {
    return work()
  } finally {
    lock.close()
  }
}

/** Locks that all processes with the same data directory share. A lock is released when its process ends. */
export interface SharedLocks {
  /**
   * Runs `work` while holding the locks for all names. Throws the errors of `work`, and `TackleError` if a lock is not
   * free within a minute.
   */
  run<T>(names: readonly string[], work: () => Promise<T>): Promise<T>
}

/** Number of lock files. If two names share a file, work for one name waits for work for the other. */
const lockFiles = 64

/** Maximum wait for a shared lock, in milliseconds. A holder may run formatters for 30 seconds. */
const sharedTimeoutMs = 60_000
const pollMs = 2

/**
 * Creates locks with files in `directory`. The first lock creates the directory. If the lock files cannot be used, for
 * example in a read-only directory, passes the first error to `onProblem` and then works without locks.
 */
export function createSharedLocks(directory: string, onProblem: (error: unknown) => void): SharedLocks {
  let usable = true

  /** Opens a lock file. Returns undefined if locks cannot be used. */
  function open(file: string): DatabaseSync | undefined {
    try {
      mkdirSync(directory, { recursive: true, mode: 0o700 })
      return usable ? new sqlite.DatabaseSync(file) : undefined
    } catch (error) {
      return fail(error)
    }
  }

  function fail(error: unknown): undefined {
    if (usable) onProblem(error)
    usable = false
  }

  async function lock(file: string): Promise<DatabaseSync | undefined> {
    const database = open(file)
    const deadline = performance.now() + sharedTimeoutMs
    while (database) {
      try {
        database.exec("BEGIN IMMEDIATE")
        return database
      } catch (error) {
        if (!isBusy(error)) {
          database.close()
          return fail(error)
        }
        if (performance.now() > deadline) {
          database.close()
          throw new TackleError(
            "Another change to files has blocked this change for a minute. Nothing was changed. Try again later.",
            { code: "file.locked", recoverable: true, cause: error },
          )
        }
      }
      await delay(pollMs)
    }
    return undefined
  }

  return {
    async run(names, work) {
      const held: (DatabaseSync | undefined)[] = []
      try {
        // Acquires the locks in sorted order, so that two processes cannot deadlock.
        for (const file of [...new Set(names.map(fileOf))].toSorted())
          held.push(await lock(join(directory, file)))
        return await work()
      } finally {
        for (const database of held) database?.close()
      }
    },
  }
}

function fileOf(name: string): string {
  const digest = createHash("sha256").update(name).digest()
  return `${digest.readUInt32BE() % lockFiles}.lock`
}

/** Returns true if SQLite reports that another connection holds the lock. */
function isBusy(error: unknown): boolean {
  return error instanceof Error && "errcode" in error && error.errcode === 5
}

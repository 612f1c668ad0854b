import { accessSync, closeSync, constants, existsSync, mkdirSync, openSync, statSync } from "node:fs"
import { dirname } from "node:path"
import type { DatabaseSync } from "node:sqlite"
import { pathToFileURL } from "node:url"
import { errorMessage, systemCode, TackleError } from "../util/errors.ts"
import { createTables, type DatabaseVersion, migrate, migrations, readVersion } from "./migrations.ts"
import { StoreError, StoreRemovedError } from "./store.ts"

/**
 * SQLite is not imported statically, so that a version of Node without SQLite can load this module and report that the
 * version is too old.
 */
const sqlite = process.getBuiltinModule("node:sqlite")

/**
 * An open database whose tables have the newest version. All methods are synchronous. If the database fails, they throw
 * {@link StoreError}.
 */
export interface SqliteConnection {
  /** The database, for preparing statements. Execute the statements within {@link run}. */
  readonly database: DatabaseSync
  /** Runs `work`. While another process locks the database, retries it for a limited time. */
  run<T>(work: () => T): T
  /**
   * Like {@link run}, for work that writes. Throws {@link StoreRemovedError} if the database has been removed, moved or
   * replaced since it was opened, because SQLite would write to the old file without an error.
   */
  change<T>(work: () => T): T
  /** Runs `work` in one transaction. Call this within {@link change}. */
  transact<T>(work: () => T): T
  /** Runs `work` and syncs its commits to the disk before returning. Call this within {@link change}. */
  durably<T>(work: () => T): T
  /** Returns unused space to the file system. */
  reclaim(): void
  /** Closes the database. Idempotent. {@link run} throws afterwards. */
  close(): void
}

/**
 * Opens or creates the file and migrates its tables. `busyMs` is the maximum wait for other processes, in milliseconds.
 * Throws {@link StoreError} and leaves the file unchanged if the file is not a Tackle database, or was written by a
 * newer version of Tackle.
 */
export function openConnection(path: string, busyMs: number): SqliteConnection {
  createFile(path)
  const database = guarded(
    path,
    () => new sqlite.DatabaseSync(path, { timeout: busyMs, enableForeignKeyConstraints: true }),
  )
  try {
    return guarded(path, () => {
      prepareDatabase(path, database, busyMs)
      return connect(path, database, busyMs)
    })
  } catch (error) {
    database.close()
    throw error
  }
}

/** Opens an empty database in memory, which only this connection can use. */
export function openMemoryConnection(): SqliteConnection {
  const path = ":memory:"
  const database = new sqlite.DatabaseSync(path, { enableForeignKeyConstraints: true })
  return guarded(path, () => {
    createTables(database)
    return connect(path, database, 0)
  })
}

/**
 * Opens an existing file that cannot be written. If the database has no log, or SQLite cannot use the log, opens only
 * the main file, as immutable. `isCurrent` is false if the log may contain changes that are not visible for this
 * reason. Throws {@link StoreError} if the file is not a Tackle database with the current version.
 */
export function openReadOnlyConnection(
  path: string,
  busyMs: number,
): { connection: SqliteConnection; isCurrent: boolean } {
  const hasLog = (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0
  const hasIndex = statSync(`${path}-shm`, { throwIfNoEntry: false }) !== undefined
  const isShared = hasLog && hasIndex
  const location = isShared ? path : new URL(`${pathToFileURL(path).href}?immutable=1`)
  const database = guarded(path, () => new sqlite.DatabaseSync(location, { timeout: busyMs, readOnly: true }))
  try {
    return guarded(path, () => {
      const { version, kind } = readKnownVersion(path, database, busyMs)
      if (kind === "empty")
        throw new StoreError(
          `The read-only database ${path} is empty. Make the file and its directory writable, or set TACKLE_DATA_DIR to another directory.`,
        )
      if (version < migrations.length)
        throw new StoreError(
          `The read-only database ${path} cannot be used, because it was written by an older version of Tackle. ` +
            "Copy its directory to a writable location, and set TACKLE_DATA_DIR to the copy.",
        )
      return { connection: connect(path, database, busyMs), isCurrent: isShared || !hasLog }
    })
  } catch (error) {
    database.close()
    throw error
  }
}

function createFile(path: string): void {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    // Creates only missing files: opening and closing an existing file would release the locks of this process's other
    // connections to it.
    if (existsSync(path)) accessSync(path, constants.R_OK | constants.W_OK)
    else closeSync(openSync(path, "a", 0o600))
  } catch (error) {
    throw new StoreError(
      `The database ${path} cannot be written (${systemCode(error) ?? "unknown reason"}). ` +
        "Check the permissions of the file and its directory, or set TACKLE_DATA_DIR to a writable directory.",
      error,
    )
  }
}

/** Configures the database and migrates it. Writes nothing before the version is known. */
function prepareDatabase(path: string, database: DatabaseSync, busyMs: number): void {
  const { version, kind } = readKnownVersion(path, database, busyMs)
  database.exec(synchronous.normal)
  // This setting takes effect only before the first table is created. In older databases, the first reclaim applies it.
  if (kind === "empty") database.exec("PRAGMA auto_vacuum = INCREMENTAL")
  waitWhileBusy(busyMs, () => database.exec("PRAGMA journal_mode = WAL"))
  if (version < migrations.length) waitWhileBusy(busyMs, () => migrate(database))
}

/**
 * Returns the version. Throws {@link StoreError} if another program or a newer version of Tackle wrote the database.
 */
function readKnownVersion(path: string, database: DatabaseSync, busyMs: number): DatabaseVersion {
  const found = waitWhileBusy(busyMs, () => readVersion(database))
  if (found.kind === "foreign")
    throw new StoreError(
      `${path} belongs to another program. Move it to another directory, or set TACKLE_DATA_DIR to another directory.`,
    )
  if (found.version > migrations.length)
    throw new StoreError(
      `The database ${path} has version ${found.version}; this version of Tackle supports up to version ${migrations.length}. ` +
        "Update Tackle, or set TACKLE_DATA_DIR to another directory. Nothing was changed.",
    )
  return found
}

/**
 * In WAL mode, `FULL` syncs the log after each commit, and `NORMAL` only before a checkpoint. SQLite ignores the
 * setting within a transaction.
 */
const synchronous = { normal: "PRAGMA synchronous = NORMAL", full: "PRAGMA synchronous = FULL" }

function connect(path: string, database: DatabaseSync, busyMs: number): SqliteConnection {
  const begin = database.prepare("BEGIN IMMEDIATE")
  const commit = database.prepare("COMMIT")
  // SQLite keeps both files open, and removes the log only when the last process closes the database.
  const files = [path, `${path}-wal`].map((file) => ({ file, id: fileId(file) }))

  function run<T>(work: () => T): T {
    if (!database.isOpen) throw new StoreError(`The store at ${path} is closed.`)
    return guarded(path, () => waitWhileBusy(busyMs, work))
  }

  /** Throws {@link StoreRemovedError} if the database or its log has been replaced by another file. Takes 3 µs. */
  function assertInPlace(): void {
    for (const { file, id } of files) {
      const now = fileId(file)
      if (now === id) continue
      const subject = file === path ? `The database ${path}` : `The log ${file} of the database`
      const what = now === undefined ? "removed or moved" : "replaced by another file"
      const next =
        now === undefined && file === path ? "If you still have it, put it back. Then restart" : "Restart"
      throw new StoreRemovedError(
        `${subject} was ${what} while it was open, so nothing more can be stored. ${next} Tackle.`,
      )
    }
  }

  function change<T>(work: () => T): T {
    return run(() => {
      assertInPlace()
      return work()
    })
  }

  return {
    database,
    run,
    change,
    transact(work) {
      begin.run()
      try {
        const result = work()
        commit.run()
        return result
      } catch (error) {
        // SQLite has already rolled back after some errors, such as a full disk.
        if (database.isTransaction) database.exec("ROLLBACK")
        throw error
      }
    },
    durably(work) {
      database.exec(synchronous.full)
      try {
        return work()
      } finally {
        database.exec(synchronous.normal)
      }
    },
    reclaim() {
      change(() => {
        const incremental = database.prepare("PRAGMA auto_vacuum").get()?.auto_vacuum === 2
        database.exec(incremental ? "PRAGMA incremental_vacuum" : "PRAGMA auto_vacuum = INCREMENTAL; VACUUM")
        // The file shrinks only at a checkpoint.
        database.exec("PRAGMA wal_checkpoint(TRUNCATE)")
      })
    },
    close() {
      if (database.isOpen) run(() => database.close())
    },
  }
}

/** Returns the device and inode of a file, or undefined if it does not exist. */
function fileId(path: string): string | undefined {
  const found = statSync(path, { throwIfNoEntry: false })
  return found && `${found.dev}:${found.ino}`
}

function guarded<T>(path: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw sqliteError(path, error)
  }
}

/** Explanations of SQLite's primary result codes for the user, each with the next step. */
const meanings: Record<number, string> = {
  1: "has missing or wrong tables. Move it to another directory (keep it, because some data may be recoverable), then restart Tackle to create a new database.",
  3: "cannot be accessed. Check the permissions of the file and its directory.",
  5: "is locked by another process. Wait until that process finishes, or end it, then try again.",
  6: "is locked by another process. Wait until that process finishes, or end it, then try again.",
  8: "cannot be written. Check the permissions of the file and its directory, or set TACKLE_DATA_DIR to another directory.",
  10: "could not be read or written: the disk reports an error, or is full. Check the disk, then try again.",
  11: "is damaged. Move it to another directory (keep it, because some data may be recoverable), then restart Tackle to create a new database.",
  13: "could not be written: the disk is full. Free some space, then try again.",
  14: "cannot be opened. Check the permissions of the file and its directory, or set TACKLE_DATA_DIR to another directory.",
  19: "rejected a change, because the session or message to which it belongs does not exist.",
  26: "is not a SQLite database. Move it to another directory, then restart Tackle to create a new database.",
}

const busy = 5

/**
 * Converts an error from an operation on the database at `path` to a {@link StoreError}. Returns Tackle's own errors
 * unchanged.
 */
function sqliteError(path: string, error: unknown): TackleError {
  if (TackleError.isInstance(error)) return error
  const code = primaryCode(error)
  if (code === undefined)
    return new StoreError(`An operation on the database ${path} failed: ${errorMessage(error)}`, error)
  const meaning =
    meanings[code] ??
    "could not be used. If this happens again, move the file to another directory, then restart Tackle."
  return new StoreError(`The database ${path} ${meaning} (${errorMessage(error)})`, error)
}

/**
 * Retries `work` for up to `ms` milliseconds while it fails with SQLITE_BUSY. SQLite itself waits for ordinary locks,
 * but reports busy immediately while another process recovers the log or changes the journal mode. The wait is
 * synchronous, so that no later commit can overtake this one.
 */
function waitWhileBusy<T>(ms: number, work: () => T): T {
  const deadline = performance.now() + ms
  for (;;) {
    try {
      return work()
    } catch (error) {
      if (primaryCode(error) !== busy || performance.now() >= deadline) throw error
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10)
    }
  }
}

function primaryCode(error: unknown): number | undefined {
  if (typeof error !== "object" || error === null || !("errcode" in error)) return undefined
  // The lower byte is the primary code. The other bytes belong to the extended code.
  return typeof error.errcode === "number" ? error.errcode & 0xff : undefined
}

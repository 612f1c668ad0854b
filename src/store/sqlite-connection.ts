import { closeSync, mkdirSync, openSync } from "node:fs"
import { dirname } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { systemCode } from "../util/errors.ts"
import { StoreError } from "./errors.ts"
import { migrate, migrations, readVersion } from "./migrations.ts"
import { sqliteError, waitWhileBusy } from "./sqlite-errors.ts"

/** An open database of the newest version. All of it is synchronous; what it throws is a {@link StoreError}. */
export interface SqliteConnection {
  /** Statements are made of it, and run in {@link run}. */
  readonly database: DatabaseSync
  /** Runs statements, again for as long as another process keeps the database from them. */
  run<T>(work: () => T): T
  /** Makes one transaction of the statements, within {@link run}. */
  transact<T>(work: () => T): T
  /** What is committed within {@link run} is on the disk when this returns. */
  durably(work: () => void): void
  /** Gives room that nothing takes any more back to the disk. */
  reclaim(): void
  /** Once more does nothing; {@link run} then throws. */
  close(): void
}

/**
 * Opens the file, or makes it, and brings its tables up to date. `busyMs`: how long to wait for other processes. Throws
 * {@link StoreError}, and leaves the file as it is, where it is none of ours.
 */
export function openConnection(path: string, busyMs: number): SqliteConnection {
  createFile(path)
  const database = guarded(
    path,
    () => new DatabaseSync(path, { timeout: busyMs, enableForeignKeyConstraints: true }),
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

function connect(path: string, database: DatabaseSync, busyMs: number): SqliteConnection {
  const begin = database.prepare("BEGIN IMMEDIATE")
  const commit = database.prepare("COMMIT")

  function run<T>(work: () => T): T {
    if (!database.isOpen) throw new StoreError(`The store of ${path} is closed.`)
    return guarded(path, () => waitWhileBusy(busyMs, work))
  }

  return {
    database,
    run,
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
        work()
      } finally {
        database.exec(synchronous.normal)
      }
    },
    reclaim() {
      run(() => {
        const incremental = database.prepare("PRAGMA auto_vacuum").get()?.auto_vacuum === 2
        database.exec(incremental ? "PRAGMA incremental_vacuum" : "PRAGMA auto_vacuum = INCREMENTAL; VACUUM")
        // What was only written to the log does not make the file shorter.
        database.exec("PRAGMA wal_checkpoint(TRUNCATE)")
      })
    },
    close() {
      if (database.isOpen) run(() => database.close())
    },
  }
}

function guarded<T>(path: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw sqliteError(path, error)
  }
}

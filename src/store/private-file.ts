import { randomBytes } from "node:crypto"
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { dirname } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { errorMessage, systemCode, TackleError } from "../util/errors.ts"
import { parseJson } from "../util/json.ts"

/** Returns the JSON value of a file. Undefined if the file is missing or contains invalid JSON. */
export function readPrivateFile(path: string): unknown {
  let text: string
  try {
    text = readFileSync(path, "utf8")
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes(systemCode(error) ?? "")) return undefined
    throw error
  }
  const parsed = parseJson(text)
  return parsed.ok ? parsed.value : undefined
}

/**
 * Replaces the value of a JSON file that only the user can read. Atomic for readers, and serialized across processes.
 * Throws `TackleError` with the code.
 */
export function updatePrivateFile(path: string, code: string, change: (now: unknown) => unknown): void {
  translated(path, code, () => mkdirSync(dirname(path), { recursive: true, mode: 0o700 }))
  withFileLock(path, code, () => {
    const value = change(readPrivateFile(path))
    translated(path, code, () => write(path, value))
  })
}

function write(path: string, value: unknown): void {
  const temporary = `${path}.${randomBytes(6).toString("hex")}`
  try {
    writeFileSync(temporary, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600, flag: "wx" })
    renameSync(temporary, path)
  } catch (error) {
    rmSync(temporary, { force: true })
    throw error
  }
}

function translated(path: string, code: string, work: () => void): void {
  try {
    work()
  } catch (error) {
    throw new TackleError(
      `${path} cannot be written (${errorMessage(error)}). Check the permissions of its directory.`,
      { code, recoverable: false, cause: error },
    )
  }
}

/** How long to wait for the lock, in milliseconds. Its holder reads and writes one small file. */
const lockTimeoutMs = 10_000

/**
 * Runs `work` while no other process holds the lock of the path. Blocks until the lock is free. The lock is a system lock
 * on `<path>.lock`, so it ends with the process. Throws what `work` throws, and `TackleError` with the code if the lock
 * cannot be acquired.
 */
export function withFileLock<T>(path: string, code: string, work: () => T): T {
  let lock: DatabaseSync | undefined
  try {
    lock = new DatabaseSync(`${path}.lock`, { timeout: lockTimeoutMs })
    // Nothing is written: only SQLite's lock on the file matters.
    lock.exec("BEGIN IMMEDIATE")
  } catch (error) {
    lock?.close()
    throw new TackleError(
      `${path}.lock cannot be locked (${errorMessage(error)}). Check the permissions of its directory, and whether another process hangs.`,
      { code, recoverable: false, cause: error },
    )
  }
  try {
    return work()
  } finally {
    lock.close()
  }
}

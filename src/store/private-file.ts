import { randomBytes } from "node:crypto"
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { dirname } from "node:path"
import { errorMessage, systemAdvice, systemCode, TackleError } from "../util/errors.ts"
import { parseJson } from "../util/json.ts"
import { withFileLock } from "./file-lock.ts"

/**
 * Returns a file's JSON value, or undefined if the file is missing or contains invalid JSON. Throws the system error if
 * the file cannot be read.
 */
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
 * Replaces a file's JSON value with the result of `change`. Only the user can read the file. Readers see either the old
 * or the new value. Updates are serialized across processes. Throws `TackleError` with the given code if the file
 * cannot be locked or written, and the system error if it cannot be read.
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
    const advice = systemAdvice(error) ?? "Check the permissions of its directory."
    throw new TackleError(`${path} cannot be written (${errorMessage(error)}). ${advice}`, {
      code,
      recoverable: false,
      cause: error,
    })
  }
}

import { randomBytes } from "node:crypto"
import {
  closeSync,
  constants,
  type Dirent,
  fstatSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
} from "node:fs"
import { systemCode, TackleError } from "./errors.ts"

/** Returns the entries in a directory, sorted by name, or an empty array if the path is not a readable directory. */
export function directoryEntries(directory: string): Dirent[] {
  try {
    return readdirSync(directory, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))
  } catch {
    return []
  }
}

/**
 * Returns true for a regular file. Follows links. Returns false if the path cannot be inspected, for example because of
 * a link loop.
 */
export function isFile(path: string): boolean {
  return statOf(path)?.isFile() === true
}

/** Returns true for a directory. Follows links. Returns false if the path cannot be inspected. */
export function isDirectory(path: string): boolean {
  return statOf(path)?.isDirectory() === true
}

function statOf(path: string) {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch {
    return undefined
  }
}

/**
 * Reads a regular file of at most `maxBytes` bytes. Returns undefined if the file does not exist. Throws a system error
 * if the file cannot be read, and `TackleError` with the code `file.irregular` if the file is too large or not a
 * regular file. Never blocks, even if the path is a named pipe without a writer.
 */
export function readRegularFile(path: string, maxBytes: number): Buffer | undefined {
  const refuse = (reason: string) => {
    throw new TackleError(reason, { code: "file.irregular", recoverable: false })
  }
  try {
    // Opening a device can have effects, so the type is checked before and after the file is opened.
    if (!statSync(path).isFile()) refuse("not a regular file")
    const descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
    try {
      const found = fstatSync(descriptor)
      if (!found.isFile()) refuse("not a regular file")
      if (found.size > maxBytes) refuse(`larger than ${maxBytes / 1024 / 1024} MB`)
      return readFileSync(descriptor)
    } finally {
      closeSync(descriptor)
    }
  } catch (error) {
    const code = systemCode(error)
    if (code === "ENOENT" || code === "ENOTDIR") return undefined
    throw error
  }
}

/**
 * Returns the trimmed text of a file that is stored next to the code, such as a tool description. Reads synchronously,
 * so call this function only while a module loads.
 */
export function readText(url: URL): string {
  return readFileSync(url, "utf8").trim()
}

/**
 * Returns the result of a file system call, or undefined if the file does not exist. If the call fails for another
 * reason, rejects with the error from the call.
 */
export async function unlessMissing<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work
  } catch (error) {
    const code = systemCode(error)
    if (code === "ENOENT" || code === "ENOTDIR") return undefined
    throw error
  }
}

/** Returns a random name for a temporary file next to a file that is being changed. */
export function temporaryName(): string {
  return `.tackle-${randomBytes(6).toString("hex")}.tmp`
}

/** Returns true for a name that {@link temporaryName} has created. */
export function isTemporaryName(name: string): boolean {
  return /^\.tackle-[0-9a-f]{12}\.tmp$/.test(name)
}

import { createHash } from "node:crypto"
import { readFileSync, statSync } from "node:fs"
import { TackleError } from "../util/errors.ts"

/** Maximum size in bytes. A project must not exhaust memory, or block startup with a device or a pipe. */
const maxBytes = 1024 * 1024

/** Text of a file with the SHA-256 (hex) of the bytes that were read. */
export interface SmallFile {
  text: string
  hash: string
}

/**
 * Reads a regular file of at most 1 MB. Returns undefined if the file does not exist. Throws system errors, and throws
 * `TackleError` if the file is too large or not a regular file.
 */
export function readSmallFile(path: string): SmallFile | undefined {
  const stats = statSync(path, { throwIfNoEntry: false })
  if (stats === undefined) return undefined
  if (!stats.isFile()) {
    throw new TackleError("not a regular file", { code: "config.file", recoverable: false })
  }
  if (stats.size > maxBytes) {
    throw new TackleError("larger than 1 MB", { code: "config.file", recoverable: false })
  }
  const bytes = readFileSync(path)
  return { text: bytes.toString("utf8"), hash: createHash("sha256").update(bytes).digest("hex") }
}

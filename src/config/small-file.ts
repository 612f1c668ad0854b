import { createHash } from "node:crypto"
import { readRegularFile } from "../util/file-system.ts"

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
  const bytes = readRegularFile(path, maxBytes)
  return bytes && { text: bytes.toString("utf8"), hash: createHash("sha256").update(bytes).digest("hex") }
}

import { createHash } from "node:crypto"
import { readRegularFile } from "../util/file-system.ts"

/** Maximum size of a file in bytes, so that a project cannot exhaust memory. */
const maxBytes = 1024 * 1024

/** The text of a file, and the SHA-256 in hex of the bytes that were read. */
export interface SmallFile {
  text: string
  hash: string
}

/**
 * Reads a regular file of at most 1 MB. Returns undefined if the file does not exist. Throws `TackleError` if the file
 * is too large or not a regular file, and the system error if the file cannot be read for another reason.
 */
export function readSmallFile(path: string): SmallFile | undefined {
  const bytes = readRegularFile(path, maxBytes)
  return bytes && { text: bytes.toString("utf8"), hash: createHash("sha256").update(bytes).digest("hex") }
}

import { createHash } from "node:crypto"
import { readFileSync, statSync } from "node:fs"
import { TackleError } from "../util/errors.ts"

/** No config is larger; a project must not fill the memory, nor hang the start with a device or a pipe. */
const maxBytes = 1024 * 1024

/** A file's text with the sha256 (hex) of the very bytes that were read. */
export interface SmallFile {
  text: string
  hash: string
}

/** Reads a regular file of at most 1 MB. Throws what the system throws but for a missing file, `TackleError` for others. */
export function readSmallFile(path: string): SmallFile | undefined {
  const stats = statSync(path, { throwIfNoEntry: false })
  if (stats === undefined) return undefined
  if (!stats.isFile()) {
    throw new TackleError("it is no regular file", { code: "config.file", recoverable: false })
  }
  if (stats.size > maxBytes) {
    throw new TackleError("it is larger than 1 MB", { code: "config.file", recoverable: false })
  }
  const bytes = readFileSync(path)
  return { text: bytes.toString("utf8"), hash: createHash("sha256").update(bytes).digest("hex") }
}

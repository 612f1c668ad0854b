import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import { errorMessage, TackleError } from "./errors.ts"

/** sha256 in hex of the files that a module may consist of, by their real paths. */
export type PinnedFiles = ReadonlyMap<string, string>

/** A file is not what was pinned, or was not pinned at all. */
export class UnpinnedFileError extends TackleError {
  constructor(path: string, why: string) {
    super(`${path} ${why}`, { code: "module.unpinned", recoverable: false })
  }
}

/** The bytes of a file that is what was pinned. Throws {@link UnpinnedFileError} for any other. */
export function readPinned(path: string, pinned: PinnedFiles): Buffer {
  if (!readable.test(path)) throw new UnpinnedFileError(path, "is neither JavaScript, TypeScript nor JSON.")
  let bytes: Buffer
  try {
    bytes = readFileSync(path)
  } catch (error) {
    throw new UnpinnedFileError(path, `cannot be read: ${errorMessage(error)}`)
  }
  const hash = createHash("sha256").update(bytes).digest("hex")
  if (pinned.get(path) === hash) return bytes
  throw new UnpinnedFileError(path, "is not what was trusted: it has changed since. It was not run.")
}

/** Compiled code would be read once more, by the system. */
const readable = /\.(?:[mc]?js|m?ts|json)$/

import { createHash } from "node:crypto"
import { readFileSync, statSync } from "node:fs"

/** Files above this are not hashed, so that a hostile project cannot hold up the start. In bytes. */
const maxBytes = 64 * 1024 * 1024

/** sha256 in hex. Empty for what is no file, cannot be read or is too large: it is not trusted. */
export function hashFile(path: string): string {
  try {
    const stats = statSync(path)
    if (!stats.isFile() || stats.size > maxBytes) return ""
    return createHash("sha256").update(readFileSync(path)).digest("hex")
  } catch {
    // Gone or not readable.
    return ""
  }
}

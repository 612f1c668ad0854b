import { statSync } from "node:fs"
import { systemCode } from "./errors.ts"

/** Results of {@link fileStamp}, keyed by absolute path. */
export type FileStamps = ReadonlyMap<string, string>

/**
 * Returns the inode, size and times of a file as a string that changes when the file changes. Returns an empty string
 * if the file does not exist, and an error code if it cannot be inspected. The stamp of a directory changes when
 * entries are added or removed. Costs one `stat`. Follows links. Never throws.
 */
export function fileStamp(path: string): string {
  try {
    const found = statSync(path, { throwIfNoEntry: false })
    return found ? `${found.ino} ${found.size} ${found.mtimeMs} ${found.ctimeMs}` : ""
  } catch (error) {
    // The file is not accessible. If it becomes accessible, the stamp changes.
    return systemCode(error) ?? "unknown"
  }
}

/**
 * Returns true if the file or directory changed at `since` (in milliseconds since the epoch) or later, and false if it
 * does not exist or cannot be inspected.
 */
export function changedSince(path: string, since: number): boolean {
  try {
    const found = statSync(path, { throwIfNoEntry: false })
    return found !== undefined && Math.max(found.ctimeMs, found.mtimeMs) >= since
  } catch {
    // The file is not accessible. Its stamp reveals later changes.
    return false
  }
}

/** Returns the current stamps of the paths. */
export function stampFiles(paths: Iterable<string>): Map<string, string> {
  return new Map([...paths].map((path) => [path, fileStamp(path)]))
}

/** Returns true if no file has changed since its stamp was taken. Skips files that have the same stamp in `checked`. */
export function isCurrent(stamps: FileStamps, checked?: FileStamps): boolean {
  for (const [path, stamp] of stamps)
    if (checked?.get(path) !== stamp && fileStamp(path) !== stamp) return false
  return true
}

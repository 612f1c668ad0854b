import { statSync } from "node:fs"
import { systemCode } from "./errors.ts"

/** By absolute path: what {@link fileStamp} said. */
export type FileStamps = ReadonlyMap<string, string>

/**
 * What tells a file or directory from itself after a change: which one it is, its size and times. Empty where there is
 * none. Of a directory it says whether entries came or went. Costs one `stat`; links are followed. Never throws.
 */
export function fileStamp(path: string): string {
  try {
    const found = statSync(path, { throwIfNoEntry: false })
    return found ? `${found.ino} ${found.size} ${found.mtimeMs} ${found.ctimeMs}` : ""
  } catch (error) {
    // Out of reach: that it comes into reach is a change too.
    return systemCode(error) ?? "unknown"
  }
}

/** True where something on the path was written, or came or went in it, at `since` or later: milliseconds since the epoch. */
export function changedSince(path: string, since: number): boolean {
  try {
    const found = statSync(path, { throwIfNoEntry: false })
    return found !== undefined && Math.max(found.ctimeMs, found.mtimeMs) >= since
  } catch {
    // Out of reach: what it is from now on is its stamp.
    return false
  }
}

/** The stamps of these paths now. */
export function stampFiles(paths: Iterable<string>): Map<string, string> {
  return new Map([...paths].map((path) => [path, fileStamp(path)]))
}

/** True where all of these are still what they were. Of those in `checked` with the same stamp that is known. */
export function isCurrent(stamps: FileStamps, checked?: FileStamps): boolean {
  for (const [path, stamp] of stamps)
    if (checked?.get(path) !== stamp && fileStamp(path) !== stamp) return false
  return true
}

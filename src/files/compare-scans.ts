import { lstatSync, type Stats } from "node:fs"
import type { FileChange, FileVersion } from "../schema/part.ts"
import { hashOf } from "./content-store.ts"
import type { Scan, ScannedFile } from "./scan.ts"

/** A file that a command changed, with the bytes from before where they are held. */
export interface SeenChange {
  change: FileChange
  bytes: Uint8Array | undefined
}

/** What differs between two scans of one tree. */
export interface ScanDifference {
  changes: SeenChange[]
  /** Files that came into sight without being new: moved here, or ignored before. Nobody knows what stood there. */
  appeared: string[]
}

/** Compares the scans before and after a command that began at `since`, in milliseconds since the epoch. */
export function compareScans(before: Scan, after: Scan, since: number): ScanDifference {
  const changes: SeenChange[] = []
  const appeared: string[] = []
  for (const [path, now] of after.files) {
    const old = before.files.get(path)
    if (old) {
      if (!isSame(old, now)) changes.push(changed(path, old, now))
    } else if (before.complete && isNew(lstatSync(path, { throwIfNoEntry: false }), since)) {
      const change: FileChange = { path, after: versionOf(now) }
      // Nobody could tell whether it is still the same one.
      if (!now.bytes) change.fixed = "too-large"
      changes.push({ change, bytes: undefined })
    } else {
      appeared.push(path)
    }
  }
  for (const [path, old] of before.files) {
    // What is still there was only put out of sight, by an ignore file or by the limits.
    if (after.files.has(path) || lstatSync(path, { throwIfNoEntry: false })?.isFile()) continue
    changes.push(changed(path, old, undefined))
  }
  return { changes, appeared }
}

function isSame(a: ScannedFile, b: ScannedFile): boolean {
  if (a.mode !== b.mode) return false
  if (a.bytes && b.bytes) return a.bytes === b.bytes || Buffer.compare(a.bytes, b.bytes) === 0
  return a.signature === b.signature
}

function changed(path: string, old: ScannedFile, now: ScannedFile | undefined): SeenChange {
  const change: FileChange = { path, before: versionOf(old) }
  if (now) change.after = versionOf(now)
  if (!old.bytes || (now && !now.bytes)) change.fixed = "too-large"
  return { change, bytes: old.bytes }
}

/** Without bytes there is no hash, which is then that of nothing that could be found. */
function versionOf({ bytes, mode }: ScannedFile): FileVersion {
  return { hash: bytes ? hashOf(bytes) : "", mode }
}

/** Times of files come from a clock that ticks every 4 to 10 ms, and may lag behind. */
const clockTickMs = 20

/** True for a file that was made since. An old one that was moved here keeps its time of birth. */
function isNew(stats: Stats | undefined, since: number): boolean {
  if (!stats) return false
  const { ctimeMs, birthtimeMs } = stats
  // Where the file system does not know the birth it is 0, or the time of the last change.
  return ctimeMs > since - clockTickMs && (birthtimeMs === 0 || birthtimeMs > since - clockTickMs)
}

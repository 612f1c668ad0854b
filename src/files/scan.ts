import { closeSync, constants, fstatSync, lstatSync, openSync, readFileSync, type Stats } from "node:fs"
import { basename, join } from "node:path"
import type { FileChange, FileVersion } from "../schema/part.ts"
import { systemCode } from "../util/errors.ts"
import { hashOf } from "./content-store.ts"
import { heavyDirectories } from "./ignore-rules.ts"
import { walk } from "./walk.ts"

/** Limits of a scan, and of its memory while a command runs. */
export interface ScanLimits {
  /** Files and directories to visit. */
  entries: number
  /** Size of one file whose bytes are held. */
  fileBytes: number
  /** Size of all files whose bytes are held. */
  totalBytes: number
}

/** A first scan within these limits takes tens of milliseconds. Later scans read only changed files. */
export const defaultScanLimits: ScanLimits = {
  entries: 10_000,
  fileBytes: 1024 * 1024,
  totalBytes: 32 * 1024 * 1024,
}

/** A regular file at the time of a scan. */
export interface ScannedFile {
  /** Permission bits. */
  mode: number
  /** Absent if a limit was exceeded or the file could not be read. */
  bytes?: Uint8Array
  /** Differs for another file or other bytes. */
  signature: string
  /** False if the file is so new that it may change again with the same signature. */
  settled: boolean
}

/** The regular files of a directory tree, by absolute path. */
export interface Scan {
  files: ReadonlyMap<string, ScannedFile>
  /** False if the entry limit was reached or a directory could not be read. */
  complete: boolean
}

/**
 * Scans every file below `root` that the search tools do not ignore. Does not read files again that are unchanged since
 * `known`. Skips links, empty directories and the directory `leaveOut`. Throws system errors for the root itself.
 */
export async function scanTree(
  root: string,
  { limits, known, leaveOut }: { limits: ScanLimits; known?: Scan; leaveOut: string },
): Promise<Scan> {
  const files = new Map<string, ScannedFile>()
  let complete = true
  let entries = 0
  let room = limits.totalBytes
  const entriesBelow = walk(root, {
    // A scan is short, and several commands may wait for the same one: it is not aborted.
    signal: new AbortController().signal,
    skips: (path, directory) =>
      directory && (heavyDirectories.has(basename(path)) || join(root, path) === leaveOut),
    onUnreadable() {
      complete = false
    },
  })
  for await (const { path: below, kind } of entriesBelow) {
    entries += 1
    if (entries > limits.entries) return { files, complete: false }
    if (kind !== "file") continue
    const path = join(root, below)
    const stats = lstatSync(path, { throwIfNoEntry: false })
    if (!stats?.isFile()) continue
    const file = scanFile(path, stats, Math.min(limits.fileBytes, room), known?.files.get(path))
    room -= file.bytes?.length ?? 0
    files.set(path, file)
  }
  return { files, complete }
}

/** File systems update times every 4 to 10 ms. A file may change again within a tick and keep its times. */
const clockTickMs = 20

function scanFile(path: string, stats: Stats, maxBytes: number, known: ScannedFile | undefined): ScannedFile {
  const { ino, size, mtimeMs, ctimeMs, mode } = stats
  const signature = `${ino} ${size} ${mtimeMs} ${ctimeMs}`
  const settled = Date.now() - ctimeMs > clockTickMs
  const same = known?.settled && known.signature === signature && known.bytes
  const bytes = same || readSmall(path, maxBytes)
  const file: ScannedFile = { mode: mode & 0o7777, signature, settled }
  return bytes && bytes.length <= maxBytes ? { ...file, bytes } : file
}

/** Returns undefined if the file is too large, no longer a file, or unreadable. */
function readSmall(path: string, maxBytes: number): Uint8Array | undefined {
  let descriptor: number
  try {
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  } catch (error) {
    if (systemCode(error) === undefined) throw error
    return undefined
  }
  try {
    const stats = fstatSync(descriptor)
    return stats.isFile() && stats.size <= maxBytes ? readFileSync(descriptor) : undefined
  } finally {
    closeSync(descriptor)
  }
}

/** A file that a command changed, with its earlier bytes if they are held. */
export interface SeenChange {
  change: FileChange
  bytes: Uint8Array | undefined
}

/** The difference between two scans of one tree. */
export interface ScanDifference {
  changes: SeenChange[]
  /** Files that appeared but are not new: moved here, or previously ignored. Their earlier state is unknown. */
  appeared: string[]
}

/** Compares the scans before and after a command that started at `since`, in milliseconds since the epoch. */
export function compareScans(before: Scan, after: Scan, since: number): ScanDifference {
  const changes: SeenChange[] = []
  const appeared: string[] = []
  for (const [path, now] of after.files) {
    const old = before.files.get(path)
    if (old) {
      if (!isSame(old, now)) changes.push(changed(path, old, now))
    } else if (before.complete && isNew(lstatSync(path, { throwIfNoEntry: false }), since)) {
      const change: FileChange = { path, after: versionOf(now) }
      // Without bytes, a later check could not tell whether the file is still the same.
      if (!now.bytes) change.fixed = "too-large"
      changes.push({ change, bytes: undefined })
    } else {
      appeared.push(path)
    }
  }
  for (const [path, old] of before.files) {
    // A file that still exists is only ignored now, or beyond the limits.
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

/** Without bytes the hash is empty, which matches no stored content. */
function versionOf({ bytes, mode }: ScannedFile): FileVersion {
  return { hash: bytes ? hashOf(bytes) : "", mode }
}

/** Returns true for a file created since. A file that was moved here keeps its birth time. */
function isNew(stats: Stats | undefined, since: number): boolean {
  if (!stats) return false
  const { ctimeMs, birthtimeMs } = stats
  // File systems without a birth time report 0 or the time of the last change.
  return ctimeMs > since - clockTickMs && (birthtimeMs === 0 || birthtimeMs > since - clockTickMs)
}

import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readFileSync,
  readlinkSync,
  type Stats,
} from "node:fs"
import { basename, dirname, join } from "node:path"
import type { FileChange, FileVersion } from "../schema/part.ts"
import { hashOf } from "../store/content-store.ts"
import { systemCode } from "../util/errors.ts"
import { realPath } from "../util/paths.ts"
import { heavyDirectories } from "./ignore-rules.ts"
import { walk } from "./walk.ts"

/** Limits for a scan and for the memory that its result occupies while a command runs. */
export interface ScanLimits {
  /** Maximum number of files and directories to visit. */
  entries: number
  /** Maximum size in bytes of a file whose content is kept in memory. */
  fileBytes: number
  /** Maximum size in bytes of all content that is kept in memory. */
  totalBytes: number
}

/** Default limits. A first scan within these limits takes tens of milliseconds. Later scans read only changed files. */
export const defaultScanLimits: ScanLimits = {
  entries: 10_000,
  fileBytes: 1024 * 1024,
  totalBytes: 32 * 1024 * 1024,
}

/** State of a regular file or symbolic link at the time of a scan. */
export interface ScannedFile {
  /** Permission bits. Undefined for a link. */
  mode?: number
  /** True for a symbolic link. `bytes` then contains the target of the link. */
  link?: true
  /** Inode number, which stays the same if the file is moved. */
  inode: number
  /** Content of the file. Absent if a limit was exceeded or the file could not be read. */
  bytes?: Uint8Array
  /** A string that changes if the content changes or the file is replaced. */
  signature: string
  /** False if the file changed so recently that it may change again without a new signature. */
  settled: boolean
}

/** The regular files and symbolic links of a directory tree, keyed by absolute path. */
export interface Scan {
  files: ReadonlyMap<string, ScannedFile>
  directories: ReadonlySet<string>
  /** True if the entry limit was reached. */
  limited: boolean
  /** Absolute paths of the directories and files that could not be inspected. */
  unreadable: readonly string[]
}

/**
 * Scans every file below `root` that is not ignored. Skips {@link heavyDirectories} and the directory `leaveOut`. Does
 * not read files that are unchanged since `known`, and does not follow links. Throws the system error if the root
 * directory cannot be read.
 */
export async function scanTree(
  root: string,
  { limits, known, leaveOut }: { limits: ScanLimits; known?: Scan; leaveOut: string },
): Promise<Scan> {
  const files = new Map<string, ScannedFile>()
  const directories = new Set([root])
  const unreadable: string[] = []
  let entries = 0
  let room = limits.totalBytes
  const entriesBelow = walk(root, {
    // A scan cannot be aborted, because it is short and several commands may wait for it.
    signal: new AbortController().signal,
    skips: (path, directory) =>
      directory && (heavyDirectories.has(basename(path)) || join(root, path) === leaveOut),
    onUnreadable: (below) => unreadable.push(join(root, below)),
  })
  for await (const { path: below, kind } of entriesBelow) {
    entries += 1
    if (entries > limits.entries) return { files, directories, limited: true, unreadable }
    const path = join(root, below)
    if (kind === "directory") directories.add(path)
    if (kind !== "file" && kind !== "link") continue
    const stats = statOf(path)
    if (stats === "unknown") unreadable.push(path)
    if (typeof stats === "string") continue
    const file = stats.isSymbolicLink()
      ? scanLink(path, stats)
      : stats.isFile() && scanFile(path, stats, Math.min(limits.fileBytes, room), known?.files.get(path))
    if (!file) continue
    room -= file.bytes?.length ?? 0
    files.set(path, file)
  }
  return { files, directories, limited: false, unreadable }
}

/**
 * Returns the state of a path without following a link at its end. Returns `missing` or `unknown` instead of throwing a
 * system error, because a command may leave anything at the path.
 */
function statOf(path: string): Stats | "missing" | "unknown" {
  try {
    return lstatSync(path)
  } catch (error) {
    const code = systemCode(error)
    if (code === undefined) throw error
    // ELOOP: a directory in the path was replaced by a link to itself.
    return code === "ENOENT" || code === "ENOTDIR" || code === "ELOOP" ? "missing" : "unknown"
  }
}

/**
 * Maximum granularity of file times in ms, with a margin: file systems update times every 4 to 10 ms. A file that
 * changes again within this time may keep the same times.
 */
const clockTickMs = 20

function scanFile(path: string, stats: Stats, maxBytes: number, known: ScannedFile | undefined): ScannedFile {
  const { ino: inode, mode, ctimeMs } = stats
  const signature = signatureOf(stats)
  const settled = Date.now() - ctimeMs > clockTickMs
  const same = known?.settled && known.signature === signature && known.bytes
  const bytes = same || readSmall(path, maxBytes)
  const file: ScannedFile = { mode: mode & 0o7777, inode, signature, settled }
  return bytes && bytes.length <= maxBytes ? { ...file, bytes } : file
}

function signatureOf({ ino, size, mtimeMs, ctimeMs }: Stats): string {
  return `${ino} ${size} ${mtimeMs} ${ctimeMs}`
}

/** Returns the state of a link, or undefined if the link cannot be read, for example because it has been removed. */
function scanLink(path: string, stats: Stats): ScannedFile | undefined {
  try {
    const bytes = readlinkSync(path, "buffer")
    return { link: true, inode: stats.ino, bytes, signature: signatureOf(stats), settled: false }
  } catch (error) {
    if (systemCode(error) === undefined) throw error
    return undefined
  }
}

/** Returns the bytes of a file, or undefined if the file is too large, unreadable or no longer a regular file. */
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

/** A file that a command changed. `bytes` is its earlier content and `next` its new content, if the scans kept them. */
export interface SeenChange {
  change: FileChange
  bytes: Uint8Array | undefined
  next?: Uint8Array
}

/** The difference between two scans of the same tree. */
export interface ScanDifference {
  changes: SeenChange[]
  /**
   * Paths of files whose earlier state is unknown, because the first scan did not include them, or because they were
   * moved from a location that is not scanned.
   */
  appeared: string[]
  /** Paths of known files whose state after the command cannot be determined. */
  unknown: string[]
}

/**
 * Compares a scan before a command with a scan after it. `since` is the start of the command, in milliseconds since the
 * epoch. Reads moved and new files of up to `keepBytes` bytes that the scans did not keep.
 */
export function compareScans(before: Scan, after: Scan, since: number, keepBytes: number): ScanDifference {
  const changes: SeenChange[] = []
  const appeared: string[] = []
  const unknown: string[] = []
  const origins = new Map([...before.files].map(([path, { inode }]) => [inode, path]))
  const moved = new Map<string, string>()
  for (const [path, now] of after.files) {
    const old = before.files.get(path)
    const origin = origins.get(now.inode)
    if (origin !== undefined && !after.files.has(origin)) moved.set(origin, path)
    if (old) {
      if (!isSame(old, now)) changes.push(changed(path, old, now))
    } else if (wasScanned(path, before) && (moved.get(origin ?? "") === path || isNew(path, since, origin))) {
      const bytes = now.bytes ?? readSmall(path, keepBytes)
      const change: FileChange = { path, after: versionOf({ ...now, bytes }) }
      change.directory = topmostMissing(path, before)
      // Without the bytes, undo could not check whether the file has changed.
      if (!bytes) change.fixed = "too-large"
      changes.push({ change, bytes: undefined, next: bytes })
    } else {
      appeared.push(path)
    }
  }
  for (const [path, old] of before.files) {
    // A file that still exists was not deleted. It is now ignored or beyond the limits.
    if (after.files.has(path)) continue
    const stats = statOf(path)
    if (stats === "unknown") unknown.push(path)
    // The third condition is true if a directory in the path was replaced by a link.
    else if (
      stats === "missing" ||
      !(stats.isFile() || stats.isSymbolicLink()) ||
      realPath(dirname(path)) !== dirname(path)
    ) {
      const now = moved.get(path)
      const bytes = old.bytes ?? (now === undefined ? undefined : readSmall(now, keepBytes))
      const gone = changed(path, { ...old, bytes }, undefined)
      gone.change.directory = topmostMissing(path, after)
      changes.push(gone)
    }
  }
  return { changes, appeared, unknown }
}

/** Returns the topmost directory in the path that the scan does not include. */
function topmostMissing(path: string, { directories }: Scan): string | undefined {
  let missing: string | undefined
  for (let directory = dirname(path); !directories.has(directory); directory = dirname(directory)) {
    if (directory === dirname(directory)) return undefined
    missing = directory
  }
  return missing
}

/** Returns true if the scan would have found a file at this path. */
function wasScanned(path: string, { limited, unreadable }: Scan): boolean {
  return !limited && !unreadable.some((parent) => path === parent || path.startsWith(`${parent}/`))
}

function isSame(a: ScannedFile, b: ScannedFile): boolean {
  if (a.mode !== b.mode || a.link !== b.link) return false
  if (a.bytes && b.bytes) return a.bytes === b.bytes || Buffer.compare(a.bytes, b.bytes) === 0
  return a.signature === b.signature
}

function changed(path: string, old: ScannedFile, now: ScannedFile | undefined): SeenChange {
  const change: FileChange = { path, before: versionOf(old) }
  if (now) change.after = versionOf(now)
  if (!old.bytes || (now && !now.bytes)) change.fixed = "too-large"
  return { change, bytes: old.bytes, next: now?.bytes }
}

/** Returns the version of a scanned file. Without bytes, the hash is empty and matches no stored content. */
function versionOf({ bytes, mode, link }: Pick<ScannedFile, "bytes" | "mode" | "link">): FileVersion {
  return { hash: bytes ? hashOf(bytes) : "", mode, link }
}

/**
 * Returns true if the path was created since `since`: as a new file, or as a second name of the file at `origin`. A
 * moved file keeps its birth time.
 */
function isNew(path: string, since: number, origin: string | undefined): boolean {
  const stats = statOf(path)
  if (typeof stats === "string") return false
  const { ctimeMs, birthtimeMs } = stats
  if (ctimeMs <= since - clockTickMs) return false
  // File systems without birth times report 0 or the time of the last change.
  return origin !== undefined || birthtimeMs === 0 || birthtimeMs > since - clockTickMs
}

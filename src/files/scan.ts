import { closeSync, constants, fstatSync, lstatSync, openSync, readFileSync, type Stats } from "node:fs"
import { basename, join } from "node:path"
import { systemCode } from "../util/errors.ts"
import { heavyDirectories } from "./heavy-directories.ts"
import { walk } from "./walk.ts"

/** How much of a tree is looked at, and held in memory while a command runs. */
export interface ScanLimits {
  /** Files and directories that are looked at. */
  entries: number
  /** Of one file whose bytes are held. */
  fileBytes: number
  /** Of all files whose bytes are held. */
  totalBytes: number
}

/** A scan within these takes some tens of milliseconds the first time, and reads only what changed from then on. */
export const defaultScanLimits: ScanLimits = {
  entries: 10_000,
  fileBytes: 1024 * 1024,
  totalBytes: 32 * 1024 * 1024,
}

/** A regular file as it was at the time of a scan. */
export interface ScannedFile {
  /** Permission bits. */
  mode: number
  /** Absent where the file, or all files together, were too large to be held, and where it could not be read. */
  bytes?: Uint8Array
  /** Another one: another file, or other bytes. */
  signature: string
  /** False: so new that it may change again without another signature. */
  settled: boolean
}

/** The regular files of a tree, by absolute path. */
export interface Scan {
  files: ReadonlyMap<string, ScannedFile>
  /** False: there were more entries than are looked at, or a directory could not be read. */
  complete: boolean
}

/**
 * Looks at every file below `root` that is not ignored, by the rules of the search tools. Files that are as they were in
 * `known` are not read again. Links, empty directories and all below
 * `leaveOut` are left out. Throws what the system throws for the root
 * itself.
 */
export async function scanTree(
  root: string,
  { limits, known, leaveOut }: { limits: ScanLimits; known?: Scan | undefined; leaveOut: string },
): Promise<Scan> {
  const files = new Map<string, ScannedFile>()
  let complete = true
  let entries = 0
  let room = limits.totalBytes
  const entriesBelow = walk(root, {
    // It is short, and others may wait for it too.
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

/**
 * A file that was changed so shortly before it was looked at may change again without another time: the clock of a file
 * system ticks every 4 to 10 ms.
 */
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

/** Undefined where it is too large, is no longer a file, or may not be read. */
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

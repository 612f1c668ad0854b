import { createHash } from "node:crypto"
import { createReadStream } from "node:fs"
import { stat } from "node:fs/promises"
import type { SharedLocks } from "../store/file-lock.ts"
import { type TrackTemporary, untracked } from "./temporary-files.ts"

/**
 * Tracks which files a session has read or written, and their content at that time. Paths are absolute and resolved.
 */
export interface FileTracker {
  seen(path: string): FileStamp | undefined
  record(path: string, stamp: FileStamp): void
  /** Runs `work` while no other call in the session holds any of the paths. */
  lock<T>(paths: readonly string[], work: () => Promise<T>): Promise<T>
  /**
   * Runs the final step of a change while no other session, in this or another process, holds any of the paths. In this
   * step, the tool checks that the files are unchanged, writes them and formats them. `work` must not wait for the
   * user. Formatters may take seconds.
   */
  commit<T>(paths: readonly string[], work: () => Promise<T>): Promise<T>
  /** Records each temporary file that a change creates next to the user's files. */
  trackTemporary: TrackTemporary
}

/** State of a file when the session last saw it. Files larger than {@link maxDigestBytes} have no digest. */
export interface FileStamp {
  /** Size in bytes. */
  size: number
  mtimeMs: number
  /** SHA-256 of the content in hex. */
  digest?: string
}

/**
 * Maximum size in bytes of a file that is hashed. Larger files are compared by size and time, because hashing reads the
 * whole file.
 */
export const maxDigestBytes = 64 * 1024 * 1024

/** Locks and journal for file changes, shared by all sessions of an engine. */
export interface FileCommits {
  locks: PathLocks
  trackTemporary: TrackTemporary
}

/** A file tracker that can list its files. */
export interface ListableFileTracker extends FileTracker {
  entries(): readonly (readonly [path: string, stamp: FileStamp])[]
}

/** Creates an in-memory tracker. When a session is resumed, the session layer restores the tracker's entries. */
export function createFileTracker(
  { locks, trackTemporary }: FileCommits = { locks: createPathLocks(), trackTemporary: untracked },
): ListableFileTracker {
  const stamps = new Map<string, FileStamp>()
  const calls = createPathLocks()
  return {
    seen: (path) => stamps.get(path),
    entries: () => [...stamps],
    record(path, stamp) {
      stamps.set(path, stamp)
    },
    lock: calls.run,
    commit: locks.run,
    trackTemporary,
  }
}

/** Returns the current stamp of a file on disk. Throws the system error if the file cannot be read. */
export async function stampFile(path: string): Promise<FileStamp> {
  const { size, mtimeMs } = await stat(path)
  if (size > maxDigestBytes) return { size, mtimeMs }
  const hash = createHash("sha256")
  for await (const chunk of createReadStream(path)) hash.update(chunk)
  return { size, mtimeMs, digest: hash.digest("hex") }
}

/** Returns the stamp of bytes in memory. */
export function stampBytes(bytes: Uint8Array, mtimeMs: number): FileStamp {
  const stamp: FileStamp = { size: bytes.length, mtimeMs }
  if (bytes.length <= maxDigestBytes) stamp.digest = createHash("sha256").update(bytes).digest("hex")
  return stamp
}

/**
 * Returns true if both stamps describe the same content. Compares the digests if both stamps have a digest, and
 * otherwise the sizes and times.
 */
export function sameStamp(a: FileStamp, b: FileStamp): boolean {
  if (a.digest !== undefined && b.digest !== undefined) return a.digest === b.digest
  return a.size === b.size && a.mtimeMs === b.mtimeMs
}

/** One lock per path. */
export interface PathLocks {
  /**
   * Runs `work` while holding the locks of all paths, which must be resolved. Calls for the same path run in the order
   * in which they request its lock; a call requests the locks of several paths one after another. If `work` fails,
   * rejects with its error.
   */
  run<T>(paths: readonly string[], work: () => Promise<T>): Promise<T>
}

/** Creates a set of locks for this process. If `shared` is given, the locks also apply to other processes. */
export function createPathLocks(shared?: SharedLocks): PathLocks {
  const tails = new Map<string, Promise<unknown>>()

  async function runAlone<T>(path: string, work: () => Promise<T>): Promise<T> {
    const before = tails.get(path) ?? Promise.resolve()
    const { promise: tail, resolve: release } = Promise.withResolvers<void>()
    tails.set(path, tail)
    await before
    try {
      return await work()
    } finally {
      release()
      if (tails.get(path) === tail) tails.delete(path)
    }
  }

  return {
    // Locks are acquired in sorted order, so that two calls cannot deadlock.
    run: (paths, work) =>
      [...new Set(paths)]
        .toSorted()
        .reduceRight(
          (inner, path) => () => runAlone(path, inner),
          shared ? () => shared.run(paths, work) : work,
        )(),
  }
}

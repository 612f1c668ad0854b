import { createHash } from "node:crypto"
import { createReadStream } from "node:fs"
import { stat } from "node:fs/promises"
import { type TrackTemporary, untracked } from "./temporary-files.ts"

/** Tracks which files a session has read or written, by resolved absolute path, and their content at that time. */
export interface FileTracker {
  seen(path: string): FileStamp | undefined
  record(path: string, stamp: FileStamp): void
  /** Runs `work` when no other call of the session holds one of the paths. */
  lock<T>(paths: readonly string[], work: () => Promise<T>): Promise<T>
  /**
   * Runs the last step of a change when no other session of the engine holds one of the paths: check that the files are
   * unchanged, write and format them. Must not wait for the user. Formatters may take seconds.
   */
  commit<T>(paths: readonly string[], work: () => Promise<T>): Promise<T>
  /** Records each temporary file that a change creates among the user's files. */
  trackTemporary: TrackTemporary
}

/** The content of a file when the session last saw it. Without a digest above {@link maxDigestBytes}. */
export interface FileStamp {
  /** Size in bytes. */
  size: number
  mtimeMs: number
  /** SHA-256 in hex. */
  digest?: string
}

/** Limit in bytes. Larger files are compared by size and time, because hashing reads the whole file. */
export const maxDigestBytes = 64 * 1024 * 1024

/** The resources for file changes that all sessions of an engine share. */
export interface FileCommits {
  locks: PathLocks
  trackTemporary: TrackTemporary
}

/** A file tracker that lists its files. */
export interface ListableFileTracker extends FileTracker {
  entries(): readonly (readonly [path: string, stamp: FileStamp])[]
}

/** Creates a tracker in memory. The session layer fills it again when a session is resumed. */
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

/** Returns the stamp of a file on disk. Throws system errors. */
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

/** Returns true if both stamps describe the same bytes: by digest if both have one, else by size and time. */
export function sameStamp(a: FileStamp, b: FileStamp): boolean {
  if (a.digest !== undefined && b.digest !== undefined) return a.digest === b.digest
  return a.size === b.size && a.mtimeMs === b.mtimeMs
}

/** One lock per path. */
export interface PathLocks {
  /** Runs `work` when it holds all of the resolved paths. First come, first served. Rejects as `work` does. */
  run<T>(paths: readonly string[], work: () => Promise<T>): Promise<T>
}

/** Creates an independent set of locks. */
export function createPathLocks(): PathLocks {
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
    // Acquired in sorted order, so that two calls cannot deadlock.
    run: (paths, work) =>
      [...new Set(paths)].toSorted().reduceRight((inner, path) => () => runAlone(path, inner), work)(),
  }
}

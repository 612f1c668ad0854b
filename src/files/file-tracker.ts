import { createHash } from "node:crypto"
import { createReadStream } from "node:fs"
import { stat } from "node:fs/promises"
import { createPathLocks, type PathLocks } from "./path-locks.ts"
import { type NoteTemporary, noteNowhere } from "./temporary-files.ts"

/** Which files this session has read or written, by resolved absolute path, and with what bytes. */
export interface FileTracker {
  seen(path: string): FileStamp | undefined
  record(path: string, stamp: FileStamp): void
  /** Runs `work` alone among all calls of the session that name one of the paths; two on one file never interleave. */
  lock<T>(paths: readonly string[], work: () => Promise<T>): Promise<T>
  /**
   * Runs the last step of a change alone among all sessions of the engine: to look whether the files are still what was
   * asked about, to write them and to format them. Nobody is asked in it. It is short but for formatters, which may take
   * seconds (`tools/file/format-file.ts`): other sessions wait so long for these files, and for no others.
   */
  commit<T>(paths: readonly string[], work: () => Promise<T>): Promise<T>
  /** Is told of each file of ours that will stand among the person's own while a change is made. */
  note: NoteTemporary
}

/**
 * What a file's bytes were when this session last saw them. `size` in bytes; `digest` is the sha256 in hex, absent for
 * files too large to hash, where `mtimeMs` and `size` decide.
 */
export interface FileStamp {
  size: number
  mtimeMs: number
  digest?: string
}

/** Files above this many bytes are told apart by size and time alone: hashing them would cost a read of the whole. */
export const maxDigestBytes = 64 * 1024 * 1024

/** What all sessions of an engine share where they change files. */
export interface FileCommits {
  locks: PathLocks
  note: NoteTemporary
}

/** A ledger that can be looked through. */
export interface KnownFiles extends FileTracker {
  /** All files that were seen, by path, with what they were. */
  entries(): readonly (readonly [path: string, stamp: FileStamp])[]
}

/** What this session knows of the files, kept in memory. `session/` fills it again when a session is continued. */
export function createFileTracker(
  { locks, note }: FileCommits = { locks: createPathLocks(), note: noteNowhere },
): KnownFiles {
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
    note,
  }
}

/** The stamp of a file as it is on disk now. Throws what the system throws. */
export async function stampFile(path: string): Promise<FileStamp> {
  const { size, mtimeMs } = await stat(path)
  if (size > maxDigestBytes) return { size, mtimeMs }
  const hash = createHash("sha256")
  for await (const chunk of createReadStream(path)) hash.update(chunk)
  return { size, mtimeMs, digest: hash.digest("hex") }
}

/** The stamp of bytes at hand. */
export function stampBytes(bytes: Uint8Array, mtimeMs: number): FileStamp {
  const stamp: FileStamp = { size: bytes.length, mtimeMs }
  if (bytes.length <= maxDigestBytes) stamp.digest = createHash("sha256").update(bytes).digest("hex")
  return stamp
}

/** True if both describe the same bytes: by digest where both have one, else by size and time. */
export function sameStamp(a: FileStamp, b: FileStamp): boolean {
  if (a.digest !== undefined && b.digest !== undefined) return a.digest === b.digest
  return a.size === b.size && a.mtimeMs === b.mtimeMs
}

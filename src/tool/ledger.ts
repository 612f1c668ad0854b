import { createHash } from "node:crypto"
import { createReadStream } from "node:fs"
import { stat } from "node:fs/promises"
import type { FileLedger, FileStamp } from "./context.ts"
import { createPathLocks, type PathLocks } from "./path-locks.ts"
import { type NoteTemporary, noteNowhere } from "./temporary-book.ts"

/** Files above this many bytes are told apart by size and time alone: hashing them would cost a read of the whole. */
export const maxDigestBytes = 64 * 1024 * 1024

/** What all sessions of an engine share where they change files. */
export interface FileCommits {
  locks: PathLocks
  note: NoteTemporary
}

/** A ledger that can be looked through. */
export interface KnownFiles extends FileLedger {
  /** All files that were seen, by path, with what they were. */
  entries(): readonly (readonly [path: string, stamp: FileStamp])[]
}

/** What this session knows of the files, kept in memory. `session/` fills it again when a session is continued. */
export function createFileLedger(
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

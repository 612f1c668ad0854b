import { closeSync, ftruncateSync, openSync, write, writeSync } from "node:fs"

/** An append-only file. A write waits for the disk only if the disk is slower than the writer. */
export interface WriteBehind {
  /** Number of bytes appended so far. The last large chunk may not be on disk yet. */
  readonly bytes: number
  /** Appends a chunk. The caller may reuse its memory afterwards. Throws if this write or an earlier one failed. */
  append(chunk: Uint8Array): void
  /** Returns when all bytes are written. Throws if a write failed. */
  settle(): void
  /** Calls `settle` and closes the file, even if `settle` throws. */
  close(): void
}

/** Size in bytes below which chunks are written synchronously, because the thread pool would cost more. */
const smallBytes = 32 * 1024

/**
 * Creates a file that only its owner can read. The thread pool writes a copy of one large chunk at a time. Chunks that
 * arrive during this time are written synchronously, so that a fast caller has to wait for the disk. `settle` writes
 * the pending chunk again: the same bytes at the same position.
 */
export function openWriteBehind(path: string): WriteBehind {
  const descriptor = openSync(path, "w", 0o600)
  let bytes = 0
  let copy = Buffer.alloc(0)
  /** The chunk that the thread pool is writing. */
  let underWay: { piece: Uint8Array; position: number; settled: boolean } | undefined
  let failure: { error: unknown } | undefined
  let closed = false

  function put(chunk: Uint8Array, position: number): void {
    for (let offset = 0; offset < chunk.length; )
      offset += writeSync(descriptor, chunk, offset, chunk.length - offset, position + offset)
  }

  function putBehind(chunk: Uint8Array): void {
    if (copy.length < chunk.length) copy = Buffer.allocUnsafeSlow(chunk.length)
    copy.set(chunk)
    const piece = copy.subarray(0, chunk.length)
    const own = { piece, position: bytes, settled: false }
    underWay = own
    write(descriptor, piece, 0, piece.length, own.position, (error, written) => {
      underWay = undefined
      if (!own.settled) {
        if (error) fail(error, own.position)
        else finish(piece.subarray(written), own.position + written)
      }
      if (closed) closeQuietly()
    })
  }

  /** Closes the file and ignores errors, because `close` has already written the chunk again. */
  function closeQuietly(): void {
    try {
      closeSync(descriptor)
    } catch {}
  }

  /** Writes the remaining bytes of a chunk, because a system call may write only part of it. */
  function finish(rest: Uint8Array, position: number): void {
    try {
      put(rest, position)
    } catch (error) {
      fail(error, position)
    }
  }

  /** Remembers the error for the next call. Truncates the file, so that it has no gap. */
  function fail(error: unknown, position: number): void {
    failure ??= { error }
    bytes = position
    try {
      ftruncateSync(descriptor, position)
    } catch {
      // Truncating the file failed, so it stays longer than `bytes`.
    }
  }

  function settle(): void {
    if (failure) throw failure.error
    if (!underWay || underWay.settled) return
    const { piece, position } = underWay
    underWay.settled = true
    try {
      put(piece, position)
    } catch (error) {
      fail(error, position)
      throw error
    }
  }

  return {
    get bytes() {
      return bytes
    },
    append(chunk) {
      if (failure) throw failure.error
      if (underWay || chunk.length < smallBytes) put(chunk, bytes)
      else putBehind(chunk)
      bytes += chunk.length
    },
    settle,
    close() {
      if (closed) return
      closed = true
      try {
        settle()
      } finally {
        // If a write is pending, its callback closes the file.
        if (!underWay) closeSync(descriptor)
      }
    },
  }
}

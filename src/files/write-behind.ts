import { closeSync, ftruncateSync, openSync, write, writeSync } from "node:fs"

/** A file that only grows, and whose disk is not waited for as long as it keeps up. */
export interface WriteBehind {
  /** Bytes taken so far. Those of the last large piece may still be on their way to the disk. */
  readonly bytes: number
  /** Appends; the bytes are the caller's again when it returns. Throws when the disk refuses this piece or one before. */
  append(chunk: Uint8Array): void
  /** Returns when everything is on disk. Throws when the disk refuses. */
  settle(): void
  /** Settles, then takes no more. Throws like that, and is closed all the same. */
  close(): void
}

/** Below this a piece is written at once: a way through the thread pool costs as much as writing so many bytes. */
const smallBytes = 32 * 1024

/**
 * Opens a new file, readable by its owner alone. One large piece at a time is written by another thread, from a copy,
 * while the caller goes on; what comes meanwhile is written at once, so that whoever writes faster than the disk waits
 * for it. Whoever cannot wait for the other thread writes its piece again: the same bytes at the same place.
 */
export function openWriteBehind(path: string): WriteBehind {
  const descriptor = openSync(path, "w", 0o600)
  let bytes = 0
  let copy = Buffer.alloc(0)
  /** The piece that another thread writes. */
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

  /** Where nobody is left to tell. What was written was written again by whoever closed the file. */
  function closeQuietly(): void {
    try {
      closeSync(descriptor)
    } catch {}
  }

  /** The system may take a part at a time. */
  function finish(rest: Uint8Array, position: number): void {
    try {
      put(rest, position)
    } catch (error) {
      fail(error, position)
    }
  }

  /** What comes next tells the caller. The file ends where the disk refused: no hole is left in it. */
  function fail(error: unknown, position: number): void {
    failure ??= { error }
    bytes = position
    try {
      ftruncateSync(descriptor, position)
    } catch {
      // Then the file is longer than what is told of it.
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
        // The other thread still holds it otherwise, and closes it when it is done.
        if (!underWay) closeSync(descriptor)
      }
    },
  }
}

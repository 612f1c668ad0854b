import { closeSync, mkdirSync, openSync, statfsSync, writeSync } from "node:fs"
import { dirname, join } from "node:path"
import { errorMessage, TackleError } from "../util/errors.ts"
import type { MaskedStream, SecretMask } from "./secrets.ts"

/** Maximum size of a spill file: 1 GB, so that a runaway command cannot fill the disk. */
const maxSpillBytes = 1_000_000_000

/**
 * Space in bytes that spill files leave free on their disk: 64 MB, or a quarter of a disk under 256 MB, because the
 * database needs this space to record the rest of the run: 100 steps with ten results of 50 KB each take 50 MB, and
 * SQLite's log takes 4 MB.
 */
const reserve = { bytes: 64 * 1024 * 1024, share: 1 / 4 }

/**
 * Share of the reserve that one file may use between two checks of the free space, so that 64 files can share a disk. A
 * check takes 3 µs.
 */
const checkShare = 1 / 64

/**
 * A file with the full output of a call. Writes are synchronous, because the system buffers them. A thread that wrote
 * large blocks was no faster for 500 MB of output. The end of the output is held back if it could be part of a secret.
 */
export interface SpillFile {
  /** Absolute path: `<data>/truncate/<sessionID>/tool_<tool>_<id>_<n>.txt`. */
  readonly path: string
  /** Number of bytes written to the file so far. */
  readonly bytes: number
  /**
   * True if the file has reached its size limit. In this case, the last line of the file is a notice about the limit.
   */
  readonly capped: boolean
  /**
   * Appends a chunk, or does nothing if the file is closed or has reached its limit. Throws if writing fails, for
   * example on a read-only disk. If the disk is almost full, appends only the beginning of the chunk and throws.
   */
  write(chunk: Uint8Array | string): void
  /** Writes the end of the output and closes the file. Throws the same errors as `write`. Idempotent. */
  close(): void
}

/** Opens the next spill file of a call. Throws if the file cannot be created. */
export type SpillOpener = () => SpillFile

/**
 * Creates an opener for the spill files of one call, numbered from 1. The opener creates the directory if it does not
 * exist.
 */
export function createSpillOpener(options: {
  directory: string
  /** The tool and the id of the call: see {@link spillName}. */
  name: string
  maxBytes?: number
  /** Secrets to mask in the file. */
  mask?: SecretMask
}): SpillOpener {
  let opened = 0
  return () => {
    mkdirSync(options.directory, { recursive: true })
    opened += 1
    const path = join(options.directory, `tool_${options.name}_${opened}.txt`)
    const file = openSpillFile(path, options.maxBytes ?? maxSpillBytes)
    return options.mask ? masked(file, options.mask.stream()) : file
  }
}

/** Returns the part of a spill file's name that identifies a call: the name of the tool and an id. */
export function spillName(tool: string, id: string): string {
  return [tool, id].map((part) => part.replaceAll(/[^\w-]/g, "_").slice(0, 80)).join("_")
}

/** Masks secrets in the file. The last bytes are written when the file is closed. */
function masked(file: SpillFile, stream: MaskedStream): SpillFile {
  let open = true
  return {
    path: file.path,
    get bytes() {
      return file.bytes
    },
    get capped() {
      return file.capped
    },
    write(chunk) {
      if (open) file.write(stream.push(typeof chunk === "string" ? Buffer.from(chunk) : chunk))
    },
    close() {
      if (!open) return
      open = false
      try {
        file.write(stream.end())
      } finally {
        file.close()
      }
    },
  }
}

function openSpillFile(path: string, maxBytes: number): SpillFile {
  const descriptor = openSync(path, "w", 0o600)
  const space = createSpace(dirname(path))
  let bytes = 0
  let failure: { error: unknown } | undefined
  let capped = false
  let closed = false

  /** Appends the data. After an error, every later call throws the same error, so that the file has no gap. */
  function put(data: Uint8Array): void {
    if (failure) throw failure.error
    try {
      for (let offset = 0; offset < data.length; ) {
        const written = writeSync(descriptor, data, offset)
        offset += written
        bytes += written
      }
    } catch (error) {
      failure = { error }
      throw error
    }
  }

  function append(data: Uint8Array): void {
    const room = space.take(data.length)
    if (room > 0) put(data.subarray(0, room))
    if (room >= data.length) return
    throw new TackleError(
      `the disk is almost full: the last ${space.reserved()} of free space is reserved for the database`,
      { code: "spill.space", recoverable: true },
    )
  }

  return {
    path,
    get bytes() {
      return bytes
    },
    get capped() {
      return capped
    },
    write(chunk) {
      if (capped || closed) return
      const data = typeof chunk === "string" ? Buffer.from(chunk) : chunk
      const room = maxBytes - bytes
      append(data.length > room ? data.subarray(0, room) : data)
      if (data.length <= room) return
      capped = true
      put(Buffer.from(`\n[Truncated: this file reached its limit of ${maxBytes} bytes.]\n`))
    },
    close() {
      if (closed) return
      closed = true
      closeSync(descriptor)
    },
  }
}

/** Tracks the disk space that one spill file may use. */
function createSpace(directory: string) {
  let reserveBytes = reserve.bytes
  /** Number of bytes to write before the next check. */
  let unchecked = 0
  let isShort = false

  function room(): number {
    try {
      const { blocks, bavail, bsize } = statfsSync(directory)
      // Some network file systems do not report their size.
      if (blocks === 0) return Number.POSITIVE_INFINITY
      reserveBytes = Math.min(reserve.bytes, blocks * bsize * reserve.share)
      return Math.max(0, bavail * bsize - reserveBytes)
    } catch {
      return Number.POSITIVE_INFINITY
    }
  }

  return {
    /**
     * Returns how many of the next bytes may be written. Once the result is less than `bytes`, all later results are 0,
     * so that the file has no gap.
     */
    take(bytes: number): number {
      if (isShort) return 0
      if (bytes > unchecked) {
        const free = room()
        isShort = bytes > free
        if (isShort) return free
        unchecked = Math.max(bytes, Math.min(free, reserveBytes * checkShare))
      }
      unchecked -= bytes
      return bytes
    },
    /** Returns the size of the reserve as text. */
    reserved(): string {
      const kilobytes = Math.round(reserveBytes / 1024)
      return kilobytes < 1024 ? `${kilobytes} KB` : `${Math.round(kilobytes / 1024)} MB`
    },
  }
}

/** The full text of an output. As much of the text as possible is stored on disk. */
export interface FullText {
  /** Path of the spill file. Undefined until something is written. */
  readonly path: string | undefined
  /** Number of bytes in the file. */
  readonly bytes: number
  /** True if the file has reached its limit and lacks the end of the output. */
  readonly capped: boolean
  /** Message of the error that made the file incomplete. */
  readonly problem: string | undefined
  /** Appends a chunk. Never throws, because the model must receive the output even if the disk is full. */
  write(chunk: Uint8Array | string): void
  /** Writes the end of the output and closes the file. Never throws. */
  close(): void
}

/** Returns a full text that opens the spill file at the first write and writes nothing after an error. */
export function createFullText(open: SpillOpener): FullText {
  let file: SpillFile | undefined
  let problem: string | undefined

  function attempt(work: () => void): void {
    try {
      work()
    } catch (error) {
      problem ??= errorMessage(error)
    }
  }

  return {
    get path() {
      return file && file.bytes > 0 ? file.path : undefined
    },
    get bytes() {
      return file?.bytes ?? 0
    },
    get capped() {
      return file?.capped ?? false
    },
    get problem() {
      return problem
    },
    write(chunk) {
      if (problem !== undefined) return
      attempt(() => {
        file ??= open()
        file.write(chunk)
      })
    },
    close() {
      attempt(() => file?.close())
    },
  }
}
